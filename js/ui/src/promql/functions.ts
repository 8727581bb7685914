/**
 * Functions and aggregations with signatures and a line of help. Names and types are those of
 * Prometheus 3.15 (`promql/parser/functions.go`).
 */

/** What a call takes and does. */
export interface Signature {
  /**
   * Types of the arguments: v and r are instant and range vectors, s scalars, t texts; optional
   * ones with a `?`.
   */
  args: string;
  help: string;
  /** Whether `promql-experimental-functions` must be enabled. */
  isExperimental?: boolean;
}

const TYPES: Record<string, string> = { v: 'instant-vector', r: 'range-vector', s: 'scalar', t: 'string' };

/** The signature for people, such as `rate(range-vector)`. */
export function signatureText(name: string, { args }: Signature): string {
  const types = args.split(' ').filter((arg) => arg !== '');
  const texts = types.map((arg) => {
    const text = TYPES[arg[0]!] ?? arg;
    return arg.endsWith('*') ? `[${text}, …]` : arg.endsWith('?') ? `[${text}]` : text;
  });
  return `${name}(${texts.join(', ')})`;
}

function table(text: string, isExperimental = false): [string, Signature][] {
  return text.trim().split('\n').map((line) => {
    const [name, args, help] = line.split('|').map((part) => part.trim());
    return [name!, { args: args!, help: help!, ...(isExperimental ? { isExperimental } : {}) }];
  });
}

/** Functions by name. */
export const FUNCTIONS: ReadonlyMap<string, Signature> = new Map([
  ...table(`
abs | v | absolute values
absent | v | 1 if there is no such series
absent_over_time | r | 1 if there is no sample in the range
acos | v | arc cosine
acosh | v | inverse hyperbolic cosine
asin | v | arc sine
asinh | v | inverse hyperbolic sine
atan | v | arc tangent
atanh | v | inverse hyperbolic tangent
avg_over_time | r | mean of the samples in the range
ceil | v | rounds up
changes | r | how often the value changed
clamp | v s s | values between a least and a greatest one
clamp_max | v s | values no greater than this
clamp_min | v s | values no less than this
cos | v | cosine of radians
cosh | v | hyperbolic cosine
count_over_time | r | number of samples in the range
day_of_month | v? | 1 to 31, in UTC
day_of_week | v? | 0 (Sunday) to 6, in UTC
day_of_year | v? | 1 to 366, in UTC
days_in_month | v? | 28 to 31
deg | v | radians to degrees
delta | r | difference of last and first value, for gauges
deriv | r | slope per second by linear regression, for gauges
exp | v | exponential function
first_over_time | r | oldest sample in the range
floor | v | rounds down
histogram_avg | v | mean of observations in native histograms
histogram_count | v | number of observations in native histograms
histogram_fraction | s s v | share of observations between two values
histogram_quantile | s v | quantile of classic or native histograms
histogram_stddev | v | standard deviation in native histograms
histogram_stdvar | v | variance in native histograms
histogram_sum | v | sum of observations in native histograms
hour | v? | 0 to 23, in UTC
idelta | r | difference of the last two samples
increase | r | how much a counter grew in the range
irate | r | per-second growth between the last two samples
label_join | v t t t* | joins label values into a label
label_replace | v t t t t | sets a label from a match of another
last_over_time | r | newest sample in the range
ln | v | natural logarithm
log10 | v | decimal logarithm
log2 | v | binary logarithm
max_over_time | r | greatest value in the range
min_over_time | r | least value in the range
minute | v? | 0 to 59, in UTC
month | v? | 1 to 12, in UTC
pi | | π
predict_linear | r s | value in so many seconds, by linear regression
present_over_time | r | 1 where there is any sample in the range
quantile_over_time | s r | quantile of the samples in the range
rad | v | degrees to radians
rate | r | per-second growth of a counter over the range
resets | r | how often a counter was reset
round | v s? | rounds to the nearest multiple
scalar | v | the value of a single series
sgn | v | 1, 0 or -1
sin | v | sine of radians
sinh | v | hyperbolic sine
sort | v | ascending by value
sort_desc | v | descending by value
sqrt | v | square root
stddev_over_time | r | standard deviation in the range
stdvar_over_time | r | variance in the range
sum_over_time | r | sum of the samples in the range
tan | v | tangent of radians
tanh | v | hyperbolic tangent
time | | seconds since the epoch at the evaluated time
timestamp | v | times of the samples
vector | s | a scalar as a series without labels
year | v? | the year, in UTC`),
  ...table(
    `
double_exponential_smoothing | r s s | smoothed value by Holt and Winters
end | | end of the query's range
histogram_quantiles | v t s s* | several quantiles, each with a label
info | v v? | adds labels of info metrics
mad_over_time | r | median absolute deviation in the range
max_of | s s | greater of two scalars
min_of | s s | lesser of two scalars
range | | length of the query's range
sort_by_label | v t* | ascending by labels
sort_by_label_desc | v t* | descending by labels
start | | start of the query's range
start_timestamp | v | start times of counters
step | | step of the query
ts_of_first_over_time | r | time of the oldest sample
ts_of_last_over_time | r | time of the newest sample
ts_of_max_over_time | r | time of the greatest value
ts_of_min_over_time | r | time of the least value`,
    true,
  ),
]);

/** Aggregations by name. */
export const AGGREGATIONS: ReadonlyMap<string, Signature> = new Map([
  ...table(`
avg | v | mean over series
bottomk | s v | series with the least values
count | v | number of series
count_values | t v | number of series for each value
group | v | 1 for each group
max | v | greatest value
min | v | least value
quantile | s v | quantile over series
stddev | v | standard deviation over series
stdvar | v | variance over series
sum | v | sum over series
topk | s v | series with the greatest values`),
  ...table(
    `
limitk | s v | so many series of each group
limit_ratio | s v | a share of the series`,
    true,
  ),
]);
