mod behaviour;
mod model;
mod world;
