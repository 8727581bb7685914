/** The charts of the machine: PromQL over node_exporter's metrics of one job. */

import type { ChartSpec } from '../../charts/spec';
import { matcherOf } from '../../promql/selector';
import type { Labels, RuntimeInfo, Target } from '../../source/answers';

/** The job under which a node records its own machine. */
export const MACHINE_JOB = 'node';

/** Rates are over two minutes: eight rounds of 15 s. */
const RATE = '[2m]';

const DISKS = 'device!~"(ram|loop|dm-|sr|zram).*"';
const FILE_SYSTEMS = 'fstype!~"tmpfs|overlay|squashfs|ramfs|devtmpfs|erofs"';
const INTERFACES = 'device!~"lo|veth.*|docker.*|br-.*|ifb.*|dummy.*"';

/** The instance under which a node records itself. */
export function instanceOf(flags: Labels | undefined, runtime: RuntimeInfo | undefined): string | undefined {
  return flags?.['host-metrics-instance'] || runtime?.hostname;
}

/**
 * The instance of the machine in a job that takes the place of the built-in one: that of a target
 * on this machine.
 */
export function machineInstance(targets: readonly Target[], own: string): string {
  const isOwn = ({ scrapeUrl, labels }: Target): boolean => {
    const host = /^https?:\/\/(\[[^\]]*\]|[^/:]*)/.exec(scrapeUrl)?.[1];
    return scrapeUrl.startsWith('builtin:') || labels['instance'] === own || host === own || /^(localhost|127\.[\d.]+|\[::1\])$/.test(host ?? '');
  };
  return targets.find(isOwn)?.labels['instance'] ?? own;
}

/** Matchers of the machine's series. A centre has those of other machines in the same job. */
export function machineMatchers(instance: string): string {
  return `job="${MACHINE_JOB}",${matcherOf('instance', instance)}`;
}

/** All charts, in their order. */
export function machineCharts(instance: string): readonly ChartSpec[] {
  const of = (metric: string, matchers = ''): string => `${metric}{${machineMatchers(instance)}${matchers === '' ? '' : `,${matchers}`}}`;
  return [
    {
      title: 'CPU',
      unit: 'ratio',
      isStacked: true,
      yMin: 0,
      queries: [{ expr: `avg by (mode) (rate(${of('node_cpu_seconds_total', 'mode!="idle"')}${RATE}))`, title: '{mode}' }],
    },
    {
      title: 'Memory',
      unit: 'bytes',
      yMin: 0,
      queries: [
        { expr: `${of('node_memory_MemTotal_bytes')} - ${of('node_memory_MemAvailable_bytes')}`, title: 'used' },
        { expr: `${of('node_memory_Cached_bytes')} + ${of('node_memory_Buffers_bytes')}`, title: 'cache' },
        { expr: of('node_memory_MemTotal_bytes'), title: 'all' },
      ],
    },
    {
      title: 'Load',
      unit: 'none',
      yMin: 0,
      queries: [
        { expr: of('node_load1'), title: '1 min' },
        { expr: of('node_load5'), title: '5 min' },
        { expr: of('node_load15'), title: '15 min' },
      ],
    },
    {
      title: 'File systems, used',
      unit: 'ratio',
      yMin: 0,
      queries: [
        {
          expr: `max by (mountpoint) (1 - ${of('node_filesystem_avail_bytes', FILE_SYSTEMS)} / ${of('node_filesystem_size_bytes', FILE_SYSTEMS)})`,
          title: '{mountpoint}',
        },
      ],
    },
    {
      title: 'Disks',
      unit: 'bytes_per_second',
      queries: [
        { expr: `sum by (device) (rate(${of('node_disk_read_bytes_total', DISKS)}${RATE}))`, title: '{device} read' },
        { expr: `-sum by (device) (rate(${of('node_disk_written_bytes_total', DISKS)}${RATE}))`, title: '{device} written', isBelow: true },
      ],
    },
    {
      title: 'Network',
      unit: 'bytes_per_second',
      queries: [
        { expr: `sum by (device) (rate(${of('node_network_receive_bytes_total', INTERFACES)}${RATE}))`, title: '{device} received' },
        { expr: `-sum by (device) (rate(${of('node_network_transmit_bytes_total', INTERFACES)}${RATE}))`, title: '{device} sent', isBelow: true },
      ],
    },
    {
      title: 'Temperature',
      unit: 'celsius',
      isOptional: true,
      queries: [
        { expr: `max by (type, zone) (${of('node_thermal_zone_temp')})`, title: '{type} {zone}' },
        { expr: `max by (chip) (${of('node_hwmon_temp_celsius')})`, title: '{chip}' },
      ],
    },
  ];
}
