/** Samples in the text format. */

const STEP_MS = 15_000;
const MACHINE = 'job="node",instance="edge-7"';

/** An hour of a machine with two processors, up to a time. */
export function machineLines(endMs: number): string[] {
  const lines: string[] = [];
  const steps = 240;
  for (let step = 0; step <= steps; step += 1) {
    const time = endMs - (steps - step) * STEP_MS;
    const put = (name: string, labels: string, value: number): void => {
      lines.push(`${name}{${MACHINE}${labels === '' ? '' : `,${labels}`}} ${value} ${time}`);
    };
    const wave = (period: number, shift = 0): number => (1 + Math.sin((step + shift) / period)) / 2;
    const seconds = (STEP_MS / 1000) * step;
    for (const cpu of [0, 1]) {
      put('node_cpu_seconds_total', `cpu="${cpu}",mode="user"`, seconds * 0.3 + 40 * wave(20, 9 * cpu));
      put('node_cpu_seconds_total', `cpu="${cpu}",mode="system"`, seconds * 0.1 + 6 * wave(13));
      put('node_cpu_seconds_total', `cpu="${cpu}",mode="iowait"`, seconds * 0.04 + 3 * wave(31));
      put('node_cpu_seconds_total', `cpu="${cpu}",mode="idle"`, seconds * 0.5);
    }
    put('node_memory_MemTotal_bytes', '', 1024 ** 3);
    put('node_memory_MemAvailable_bytes', '', 1024 ** 3 * (0.5 + 0.2 * wave(40)));
    put('node_memory_Cached_bytes', '', 200e6 + 40e6 * wave(33));
    put('node_memory_Buffers_bytes', '', 20e6);
    put('node_load1', '', 0.4 + wave(15));
    put('node_load5', '', 0.5 + 0.6 * wave(30));
    put('node_load15', '', 0.6 + 0.3 * wave(60));
    for (const [mount, free] of [['/', 0.4], ['/data', 0.7]] as const) {
      put('node_filesystem_size_bytes', `mountpoint="${mount}",fstype="ext4",device="/dev/mmcblk0"`, 8e9);
      put('node_filesystem_avail_bytes', `mountpoint="${mount}",fstype="ext4",device="/dev/mmcblk0"`, 8e9 * free - step * 1e5);
    }
    put('node_disk_read_bytes_total', 'device="mmcblk0"', 1e4 * seconds + 1e6 * wave(25));
    put('node_disk_written_bytes_total', 'device="mmcblk0"', 5e4 * seconds + 2e6 * wave(18));
    put('node_network_receive_bytes_total', 'device="eth0"', 8e4 * seconds + 5e6 * wave(22));
    put('node_network_transmit_bytes_total', 'device="eth0"', 3e4 * seconds + 2e6 * wave(12));
    put('node_thermal_zone_temp', 'type="cpu",zone="0"', 48 + 9 * wave(35));
    // Nothing for 15 minutes, of which a query sees a gap of ten: it looks back for five.
    if (step < 80 || step > 140) put('gappy', '', wave(10));
  }
  return ['# HELP node_load1 1m load average.', '# TYPE node_load1 gauge', '# TYPE node_cpu_seconds_total counter', ...lines];
}

/** Values that would do harm as markup, and ones that are hard to show. */
export const HOSTILE: Record<string, string> = {
  html: '<img src=x onerror="window.harmed=1">',
  script: '</script><script>window.harmed=2</script>',
  quotes: `"'\`{}&amp;\\`,
  lines: 'first\nsecond',
  direction: '\u202eabc\u202c \u0000',
  long: 'x'.repeat(1500),
  link: 'javascript:window.harmed=3',
};

/** Series with such labels. */
export function hostileLines(endMs: number): string[] {
  const escaped = (text: string): string => text.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n');
  const labels = Object.entries(HOSTILE).map(([name, value]) => `${name}="${escaped(value)}"`);
  const lines = ['# HELP hostile <script>window.harmed=4</script>', '# TYPE hostile gauge'];
  for (let step = 20; step >= 0; step -= 1) lines.push(`hostile{${labels.join(',')}} ${step} ${endMs - step * STEP_MS}`);
  return lines;
}

/** A metric for each number. */
export function manyNames(count: number, endMs: number): string[] {
  return Array.from({ length: count }, (_, i) => `many_${i.toString().padStart(5, '0')}_total 1 ${endMs}`);
}

/** A metric with so many series, which grow with their number. */
export function manySeries(count: number, endMs: number): string[] {
  return [endMs - STEP_MS, endMs].flatMap((time) => Array.from({ length: count }, (_, i) => `wide{n="${i}"} ${i} ${time}`));
}
