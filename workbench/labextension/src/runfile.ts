/** Run files in the file browser: their kind, their icon, and the page a double-click opens. */

import { JupyterFrontEnd } from '@jupyterlab/application';
import { ABCWidgetFactory, DocumentWidget, TextModelFactory } from '@jupyterlab/docregistry';
import { DocumentRegistry, IDocumentWidget } from '@jupyterlab/docregistry';
import { Contents } from '@jupyterlab/services';
import { workbenchIcon } from './icon';
import { PageFrame } from './page';

export const FACTORY = 'Parallel Workbench';
const KIND = 'parallel-workbench-run';

/** A document whose content stays on the server: the app reads the file, the browser never does. */
class UnreadModelFactory extends TextModelFactory {
  get name(): string {
    return KIND;
  }
  get fileFormat(): Contents.FileFormat {
    return null;
  }
}

/** Makes the tab of a run file. */
export class RunFileFactory extends ABCWidgetFactory<IDocumentWidget<PageFrame>> {
  constructor(
    private _local: (path: string) => string,
    private _dark: () => boolean
  ) {
    const fileTypes = [KIND];
    super({ name: FACTORY, modelName: KIND, fileTypes, defaultFor: fileTypes, readOnly: true });
  }

  protected createNewWidget(context: DocumentRegistry.Context): IDocumentWidget<PageFrame> {
    const query = new URLSearchParams({ file: this._local(context.path) });
    const content = new PageFrame(`run?${query}`, this._dark());
    const tab = new DocumentWidget({ content, context });
    tab.title.icon = workbenchIcon;
    tab.toolbar.hide();
    return tab;
  }
}

/** Teach the lab what a run file is. */
export function addRunFiles(app: JupyterFrontEnd, factory: RunFileFactory): void {
  app.docRegistry.addFileType({
    name: KIND,
    displayName: 'Workbench run',
    extensions: ['.run'],
    fileFormat: 'base64',
    icon: workbenchIcon
  });
  app.docRegistry.addModelFactory(new UnreadModelFactory());
  app.docRegistry.addWidgetFactory(factory);
}
