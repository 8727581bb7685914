mod behaviour;
mod model;
mod refusals;
mod world;
