/** The charts of the machine: PromQL over node_exporter's metrics of one job. */

import type { ChartSpec } from '../../charts/spec';

/** The job under which a node records its own machine. */
export const MACHINE_JOB = 'node';

/** Rates are over two minutes: eight rounds of 15 s. */
const RATE = '[2m]';

/** Selects the machine's series. */
function of(metric: string, matchers = ''): string {
  return `${metric}{job="${MACHINE_JOB}"${matchers === '' ? '' : `,${matchers}`}}`;
}

const DISKS = 'device!~"(ram|loop|dm-|sr|zram).*"';
const FILE_SYSTEMS = 'fstype!~"tmpfs|overlay|squashfs|ramfs|devtmpfs|erofs"';
const INTERFACES = 'device!~"lo|veth.*|docker.*|br-.*|ifb.*|dummy.*"';

/** All charts, in their order. */
export const MACHINE_CHARTS: readonly ChartSpec[] = [
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
