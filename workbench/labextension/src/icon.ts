/** The workbench's icon: four lanes with work in them, in the colour of the lab's other icons. */

import { LabIcon } from '@jupyterlab/ui-components';

const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="#616161">
    <path d="M2 3h11v3H2zM5 8h8v3H5zM15 8h7v3h-7zM8 13h11v3H8zM10 18h12v3H10z"/>
    <path opacity=".45" d="M15 3h4v3h-4zM2 13h4v3H2z"/>
  </g>
</svg>`;

export const workbenchIcon = new LabIcon({ name: 'parallel-workbench:icon', svgstr: SVG });
