/** The icons: the workbench's own, and one for each of its pages, in the lab's colour of icons. */

import { LabIcon } from '@jupyterlab/ui-components';

const drawn = (name: string, shapes: string): LabIcon =>
  new LabIcon({
    name: `parallel-workbench:${name}`,
    svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
      <g class="jp-icon3" fill="#616161">${shapes}</g></svg>`
  });
const path = (d: string, more = '') => `<path d="${d}"${more}/>`;
const faint = ' opacity=".45"';

/** Four lanes with work in them. */
export const workbenchIcon = drawn(
  'icon',
  path('M2 3h11v3H2zM5 8h8v3H5zM15 8h7v3h-7zM8 13h11v3H8zM10 18h12v3H10z') +
    path('M15 3h4v3h-4zM2 13h4v3H2z', faint)
);

const icons: Record<string, LabIcon> = {
  live: drawn('live', path('M2 11h5l3-8 4 16 3-8h5v2h-4l-4 9-4-14-2 5H2z')),
  catalogue: drawn(
    'catalogue',
    path('M3 3h8v8H3zM13 13h8v8h-8z') + path('M13 3h8v8h-8zM3 13h8v8H3z', faint)
  ),
  plan: drawn(
    'plan',
    path('M3 4h18v4H3zM3 16h5v4H3zM9.5 16h5v4h-5zM16 16h5v4h-5z') +
      path('M5 8h1v8H5zM11.5 8h1v8h-1zM18 8h1v8h-1z', faint)
  ),
  compare: drawn(
    'compare',
    path('M3 3h8v4H3zM3 10h5v4H3zM3 17h7v4H3z') +
      path('M13 3h6v4h-6zM13 10h8v4h-8zM13 17h5v4h-5z', faint)
  ),
  roofline: drawn(
    'roofline',
    path('M3 19L12 7h9v3h-7.5L5.4 21z') + path('M11 16h3v3h-3zM16 13h3v3h-3z', faint)
  ),
  runs: drawn(
    'runs',
    path('M8 4h13v3H8zM8 10.5h13v3H8zM8 17h13v3H8z') +
      path('M3 4h3v3H3zM3 10.5h3v3H3zM3 17h3v3H3z', faint)
  ),
  tour: drawn('tour', path('M3 4h8v15l-8 1z') + path('M13 4h8v16l-8-1z', faint)),
  trace: drawn('trace', path('M2 4h9v3H2zM6 9h12v3H6z') + path('M17 14l5 5h-3v3h-4v-3h-3z', faint))
};

/** The icon of a page, by its place such as `run?name=a`. */
export function iconOf(place: string): LabIcon {
  const page = place.split('?')[0];
  return icons[page === 'run' ? 'runs' : page] ?? workbenchIcon;
}
