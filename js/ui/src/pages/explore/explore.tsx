/** What the source has: metrics, labels, targets, files, settings. */

import type { ComponentType } from 'preact';
import { useApp } from '../../app/context';
import { hashOf, type Route } from '../../app/route';
import { Cardinality } from './cardinality/cardinality';
import { Configuration } from './configuration/configuration';
import { Flags } from './configuration/flags';
import { Forwarding } from './forwarding/forwarding';
import { Labels } from './labels/labels';
import { Metrics } from './metrics/metrics';
import { Plugins } from './plugins/plugins';
import { Storage } from './storage/storage';
import { Targets } from './targets/targets';

/** What a section gets. */
export interface SectionProps {
  route: Route;
}

interface Section {
  name: string;
  title: string;
  view: ComponentType<SectionProps>;
  /** Whether only a node has it. */
  isOfNode: boolean;
}

const SECTIONS: readonly Section[] = [
  { name: 'metrics', title: 'Metrics', view: Metrics, isOfNode: false },
  { name: 'labels', title: 'Labels', view: Labels, isOfNode: false },
  { name: 'cardinality', title: 'Cardinality', view: Cardinality, isOfNode: false },
  { name: 'targets', title: 'Targets', view: Targets, isOfNode: true },
  { name: 'forwarding', title: 'Forwarding', view: Forwarding, isOfNode: true },
  { name: 'plugins', title: 'Plugins', view: Plugins, isOfNode: true },
  { name: 'storage', title: 'Storage', view: Storage, isOfNode: false },
  { name: 'configuration', title: 'Configuration', view: Configuration, isOfNode: true },
  { name: 'flags', title: 'Flags', view: Flags, isOfNode: true },
];

export function Explore({ route }: SectionProps) {
  const { source } = useApp();
  const sections = SECTIONS.filter((section) => source.kind === 'node' || !section.isOfNode);
  const shown = sections.find((section) => section.name === route.path[1]) ?? sections[0]!;
  return (
    <>
      <nav class="sections" aria-label="Sections">
        {sections.map(({ name, title }) => (
          <a href={route.search + hashOf(['explore', name])} aria-current={name === shown.name ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <h1 class="hidden">{shown.title}</h1>
      <shown.view key={shown.name} route={route} />
    </>
  );
}
