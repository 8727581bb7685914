/** Shapes of `data` in the answers of Prometheus' HTTP API, as far as the pages use them. */

/** Values by name. */
export type Labels = Record<string, string>;

/** A time in seconds and a number as text: `NaN`, `+Inf`, `-Inf` included. */
export type Point = [number, string];

/** A native histogram: buckets are rule, lower and upper bound, and count. */
export interface Histogram {
  count: string;
  sum: string;
  buckets?: [number, string, string, string][];
}

/** A series of an instant vector. */
export interface InstantSeries {
  metric: Labels;
  value?: Point;
  histogram?: [number, Histogram];
}

/** A series of a range. */
export interface RangeSeries {
  metric: Labels;
  values?: Point[];
  histograms?: [number, Histogram][];
}

/** What a query gives. */
export type QueryData = { stats?: QueryStats } & (
  | { resultType: 'vector'; result: InstantSeries[] }
  | { resultType: 'matrix'; result: RangeSeries[] }
  | { resultType: 'scalar' | 'string'; result: Point }
);

/** What a query has cost. */
export interface QueryStats {
  /** Seconds by phase. */
  timings?: Record<string, number>;
  samples?: {
    totalQueryableSamples?: number;
    samplesRead?: number;
    peakSamples?: number;
    /** Pairs of a time in seconds and a count. */
    totalQueryableSamplesPerStep?: [number, number][];
  };
}

/** What is said of a family of metrics. */
export interface FamilyMetadata {
  type: string;
  help: string;
  unit: string;
}

/** `metadata`: entries by family. */
export type MetadataMap = Record<string, FamilyMetadata[]>;

/** A count of something with a name. */
export interface Ranked {
  name: string;
  value: number;
}

/** `status/tsdb`. */
export interface TsdbStatus {
  headStats: { numSeries: number; numLabelPairs: number; chunkCount: number; minTime: number; maxTime: number };
  seriesCountByMetricName?: Ranked[];
  labelValueCountByLabelName?: Ranked[];
  memoryInBytesByLabelName?: Ranked[];
  seriesCountByLabelValuePair?: Ranked[];
  seriesCountByLabelName?: Ranked[];
}

/** `status/tsdb/blocks`; sizes are ours. */
export interface BlocksStatus {
  blocks: Block[];
}

/** A block. Times are milliseconds. */
export interface Block {
  ulid: string;
  minTime: number;
  maxTime: number;
  stats?: { numSamples?: number; numSeries?: number; numChunks?: number; numTombstones?: number };
  compaction?: { level?: number; sources?: string[] };
  /** Bytes of its files. */
  size?: number;
  /** Why it cannot be read. */
  error?: string;
}

/** `status/runtimeinfo`. */
export interface RuntimeInfo {
  startTime: string;
  serverTime: string;
  hostname: string;
  CWD: string;
  reloadConfigSuccess: boolean;
  lastConfigTime: string;
  corruptionCount: number;
  GOMAXPROCS: number;
  GOMEMLIMIT: number;
  storageRetention: string;
}

/** A target of `targets`. */
export interface Target {
  discoveredLabels: Labels;
  labels: Labels;
  scrapePool: string;
  scrapeUrl: string;
  lastError: string;
  lastScrape: string;
  /** Seconds. */
  lastScrapeDuration: number;
  health: 'up' | 'down' | 'unknown';
  scrapeInterval: string;
  scrapeTimeout: string;
}

/** `targets`. */
export interface Targets {
  activeTargets: Target[];
  droppedTargets: { discoveredLabels: Labels; scrapePool: string }[];
  droppedTargetCounts: Record<string, number> | null;
}

/** `targets/relabel_steps`. */
export interface RelabelSteps {
  steps: { rule: Record<string, unknown>; output: Labels; keep: boolean }[];
}

/** `rules`. */
export interface Rules {
  groups: RuleGroup[];
}

/** A group of rules. Times in text are of RFC 3339; the year 1 is none. */
export interface RuleGroup {
  name: string;
  file: string;
  rules: Rule[];
  /** Seconds. */
  interval: number;
  /** Most alerts or series of a rule; 0 is no limit. */
  limit: number;
  /** Seconds that the last evaluation took. */
  evaluationTime: number;
  lastEvaluation: string;
}

/** What rules of both types have. */
interface AnyRule {
  name: string;
  query: string;
  labels?: Labels;
  health: 'ok' | 'err' | 'unknown';
  lastError?: string;
  /** Seconds. */
  evaluationTime: number;
  lastEvaluation: string;
}

/** A rule that makes alerts. */
export interface AlertingRule extends AnyRule {
  type: 'alerting';
  /** The worst of its alerts. */
  state: 'firing' | 'pending' | 'inactive' | 'unknown';
  /** Seconds. */
  duration: number;
  keepFiringFor: number;
  annotations?: Labels;
  /** Nothing where alerts were not asked for. */
  alerts?: Alert[] | null;
}

/** A rule that makes series. */
export interface RecordingRule extends AnyRule {
  type: 'recording';
}

export type Rule = AlertingRule | RecordingRule;

/** `alerts`. */
export interface Alerts {
  alerts: Alert[];
}

/** An alert that is pending or firing. */
export interface Alert {
  labels: Labels;
  annotations: Labels;
  state: 'firing' | 'pending' | 'inactive' | 'unknown';
  activeAt?: string;
  keepFiringSince?: string;
  value: string;
}

/** `alerts/backtest`: what rules would have done over a range of seconds since the epoch. */
export interface BacktestData {
  start: number;
  end: number;
  groups: BacktestGroup[];
  /** Names of the series that rules read. */
  series: {
    stored: string[];
    /** Those that recording rules of the file make. */
    computed: string[];
    /** Whether an expression selects series without naming them. */
    any: boolean;
    /** Names of rules that read what is computed after them. */
    circular?: string[];
  };
}

/** A group of rules that were evaluated over the range. */
export interface BacktestGroup {
  name: string;
  /** Seconds. */
  interval: number;
  rules: BacktestRule[];
}

/** What evaluated rules of both types have. */
interface AnyBacktestRule {
  name: string;
  query: string;
  evaluations: number;
  failures: number;
  lastError?: string;
}

/** An alerting rule with the alerts that fired. */
export interface BacktestAlertingRule extends AnyBacktestRule {
  type: 'alerting';
  /** Seconds. */
  duration: number;
  keepFiringFor: number;
  /** Alerts that were pending and did not fire. */
  pending: number;
  fired: number;
  /** Alerts that fired and are not listed. */
  omitted: number;
  alerts: BacktestAlert[];
}

/** A recording rule with how much it computed. */
export interface BacktestRecordingRule extends AnyBacktestRule {
  type: 'recording';
  samples: number;
  series: number;
}

export type BacktestRule = BacktestAlertingRule | BacktestRecordingRule;

/** An alert that fired. */
export interface BacktestAlert {
  labels: Labels;
  annotations: Labels;
  activeAt: string;
  firedAt: string;
  /** Nothing if it was still firing at the end of the range. */
  resolvedAt?: string;
  value: string;
}

/** `alerts/history`: events of alerts, the newest first. Times are of RFC 3339. */
export interface AlertHistory {
  events: AlertEvent[];
  /** What asks for the older ones behind these; nothing if there are none. */
  nextToken?: string;
  /** The oldest event that is kept; nothing if none is. */
  oldestTime?: string;
}

/** An alert that began to fire, or that ended. */
export interface AlertEvent {
  number: number;
  id: string;
  change: 'firing' | 'resolved';
  time: string;
  file: string;
  group: string;
  labels: Labels;
  annotations: Labels;
  value: string;
  firedAt: string;
  /** `evaluation`, `rule-removed`, `unseen`, or what a newer node says. */
  cause: string;
}

/** `alerts/receivers`. */
export interface Receivers {
  receivers: Receiver[];
}

/** What is told of alerts, and how far that has come. Times are of RFC 3339. */
export interface Receiver {
  name: string;
  /** `webhook`, `command`, `heartbeat`, `alertmanager`. */
  kind: string;
  /** Notifications that should have been delivered by now. */
  undelivered: number;
  /** When the oldest of them happened. */
  undeliveredSince?: string;
  failingSince?: string;
  lastError?: string;
  lastSuccess?: string;
  sent: number;
  failed: number;
  dropped: number;
  silenced: number;
}

/** An element of Alertmanager's `silences`. Times are of RFC 3339. */
export interface Silence {
  id: string;
  status: { state: 'active' | 'pending' | 'expired' };
  updatedAt: string;
  comment: string;
  createdBy: string;
  startsAt: string;
  endsAt: string;
  matchers: Matcher[];
}

/** What a label's value must be, or must not be. */
export interface Matcher {
  name: string;
  value: string;
  isRegex: boolean;
  /** Nothing, as of older nodes, is true. */
  isEqual?: boolean;
}
