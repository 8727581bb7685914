// An example to plot: twelve hours of three machines, as OpenMetrics text.

const STEP_SECONDS = 30;
const STEPS = (12 * 3600) / STEP_SECONDS;

/** The text, ending now. */
export function exampleText(nowMs) {
  const first = Math.floor(nowMs / 1000) - STEPS * STEP_SECONDS;
  const lines = ['# TYPE node_load1 gauge', '# TYPE node_network_receive_bytes counter'];
  const nodes = ['harbour', 'lighthouse', 'pier'];
  const bytes = nodes.map(() => 0);
  for (let step = 0; step <= STEPS; step += 1) {
    const time = first + step * STEP_SECONDS;
    const hours = (step * STEP_SECONDS) / 3600;
    nodes.forEach((node, i) => {
      const chance = Math.sin(step * 127.1 + i * 311.7) * 43758.5453;
      const noise = (chance - Math.floor(chance)) * 0.3;
      const load = 1 + i * 0.8 + Math.sin(hours * 0.9 + i) * 0.7 + noise;
      bytes[i] += Math.round(STEP_SECONDS * 1000 * load * (1 + i));
      lines.push(`node_load1{node="${node}"} ${load.toFixed(2)} ${time}`);
      lines.push(`node_network_receive_bytes_total{node="${node}",device="eth0"} ${bytes[i]} ${time}`);
    });
  }
  return [...lines, '# EOF', ''].join('\n');
}
