/** The cell that opens a study in a notebook, and putting it there. */

import { JupyterFrontEnd } from '@jupyterlab/application';
import { INotebookTracker, NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import { notebookOf } from './server';

const OWN = ['slug', 'seed', 'preset', 'name', 'file', 'frame', 'theme'];

/** Python for a knob's value as an address spells it. */
function python(text: string): string {
  const named: Record<string, string> = { true: 'True', false: 'False' };
  const isNumber = /^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i.test(text);
  return isNumber ? text : (named[text] ?? JSON.stringify(text));
}

/** The cell for a study's page; `query` is the page's, with every knob that was turned. */
export function studyCell(query: URLSearchParams): string {
  const given = [JSON.stringify(query.get('slug') ?? '')];
  for (const [path, value] of query) {
    if (!OWN.includes(path) && /^[A-Za-z_][\w.]*$/.test(path)) {
      given.push(`${path.replace(/\./g, '__')}=${python(value)}`);
    }
  }
  return `from workbench import open_study\n\nopen_study(${given.join(', ')})`;
}

/** The cell that judges the claims of a study. */
export function checkCell(slug: string): string {
  return `from workbench import open_study

for verdict in open_study(${JSON.stringify(slug)}, live=False).check():
    print("holds" if verdict.outcome.holds else "NO   ", verdict.claim.sentence)
    print("      ", verdict.outcome.measured)`;
}

/** Put the notebook of that name into the server's folder and open it; what lies there stays. */
export async function makeNotebook(app: JupyterFrontEnd, name: string): Promise<void> {
  const { contents } = app.serviceManager;
  const content = await notebookOf(name);
  const made = await contents.newUntitled({ type: 'notebook' });
  await contents.save(made.path, { type: 'notebook', format: 'json', content });
  const kept = await contents.rename(made.path, `${name}.ipynb`).catch(() => made);
  await app.commands.execute('docmanager:open', { path: kept.path });
}

/** Write `text` below the active cell of the notebook last used, or into a new one. */
export async function insertCell(
  app: JupyterFrontEnd,
  notebooks: INotebookTracker,
  text: string
): Promise<void> {
  const kernelName = app.serviceManager.kernelspecs.specs?.default;
  const panel: NotebookPanel =
    notebooks.currentWidget ?? (await app.commands.execute('notebook:create-new', { kernelName }));
  await panel.context.ready;
  await panel.revealed;
  const active = panel.content.activeCell?.model;
  if (active?.type !== 'code' || active.sharedModel.source.trim()) {
    NotebookActions.insertBelow(panel.content);
  }
  panel.content.activeCell!.model.sharedModel.setSource(text);
  app.shell.activateById(panel.id);
}
