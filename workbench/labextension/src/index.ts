/** The workbench in JupyterLab: side bar, launcher cards, commands, tabs, run files. */

import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, InputDialog, IThemeManager, WidgetTracker } from '@jupyterlab/apputils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { IDocumentWidget } from '@jupyterlab/docregistry';
import { FileDialog } from '@jupyterlab/filebrowser';
import { ILauncher } from '@jupyterlab/launcher';
import { INotebookTracker } from '@jupyterlab/notebook';
import { iconOf } from './icon';
import { checkCell, insertCell, makeNotebook, studyCell } from './notebook';
import { PageFrame, PageTab } from './page';
import { addRunFiles, FACTORY, RunFileFactory } from './runfile';
import { ISystem, systems } from './server';
import { SideBar } from './sidebar';

const CATEGORY = 'Parallel Workbench';
const OPEN = 'parallel-workbench:open';
const INSERT = 'parallel-workbench:insert';
const SHOW = 'parallel-workbench:show-side-bar';
const MAKE = 'parallel-workbench:make-notebook';
const CHECK = 'parallel-workbench:check-claims';
const TRACE = 'parallel-workbench:open-trace';
const TRACES = /\.(run|json|gz|sqlite)$/i;
const PLACES = [
  { place: '', title: 'Start', caption: 'From a model, a trace, a cluster or a claim' },
  { place: 'live', title: 'Live engine', caption: 'Watch a language model decode on this machine' },
  { place: 'catalogue', title: 'Catalogue', caption: 'Every system, and which can be run' },
  { place: 'plan', title: 'Plan', caption: 'Split the training of a model over a cluster' },
  { place: 'runs', title: 'Runs', caption: 'The runs of this app, as a table' },
  { place: 'compare', title: 'Compare', caption: 'Runs side by side' },
  { place: 'roofline', title: 'Roofline', caption: 'What bounds the work on this machine' }
];

const studies = async () => (await systems()).filter(system => system.built);
const studyPlace = (slug: string) => `study?${new URLSearchParams({ slug })}`;

function activate(
  app: JupyterFrontEnd,
  notebooks: INotebookTracker,
  palette: ICommandPalette | null,
  launcher: ILauncher | null,
  restorer: ILayoutRestorer | null,
  themes: IThemeManager | null,
  documents: IDocumentManager | null
): void {
  const { commands, shell } = app;
  const namespace = 'parallel-workbench';
  const tabs = new WidgetTracker<PageTab>({ namespace });
  const files = new WidgetTracker<IDocumentWidget<PageFrame>>({ namespace: `${namespace}-runs` });
  const dark = () => !!themes?.theme && !themes.isLight(themes.theme);
  themes?.themeChanged.connect(() => {
    tabs.forEach(tab => tab.content.setDark(dark()));
    files.forEach(tab => tab.content.setDark(dark()));
  });

  /** The study that was clicked with the right button, where that is what is asked for. */
  const clicked = (args: { [name: string]: unknown }) => {
    const { slug, title } = app.contextMenuHitTest(node => !!node.dataset.slug)?.dataset ?? {};
    return args.isMenu && slug ? { slug, place: studyPlace(slug), title } : args;
  };

  let opened = 0;
  commands.addCommand(OPEN, {
    label: args => (args.isMenu ? 'Open' : String(args.title ?? 'Open a page of the workbench')),
    caption: args => (args.caption as string) ?? '',
    icon: args => (args.isPalette || args.isMenu ? undefined : iconOf(String(args.place ?? ''))),
    execute: given => {
      const args = clicked(given);
      const tab = new PageTab(String(args.place ?? ''), String(args.title ?? CATEGORY), dark());
      tab.id = `parallel-workbench-page-${opened++}`;
      tab.content.moved.connect(() => void tabs.save(tab));
      shell.add(tab, 'main');
      void tabs.add(tab);
      shell.activateById(tab.id);
      return tab;
    }
  });

  /** The page of a study in front, whose knobs the cell then carries; else one chosen. */
  const askedPlace = async (): Promise<string> => {
    const front = tabs.currentWidget;
    if (front && front === shell.currentWidget && front.content.place.startsWith('study?')) {
      return front.content.place;
    }
    const built = await studies();
    const items = built.map(system => `${system.title} (${system.family})`);
    const answer = await InputDialog.getItem({ title: 'Insert which study?', items });
    const chosen = built[items.indexOf(answer.value ?? '')];
    return chosen ? studyPlace(chosen.slug) : '';
  };
  commands.addCommand(INSERT, {
    label: 'Insert Study into Notebook',
    caption: 'Write the cell that opens a study, with the knobs of the page in front',
    execute: async given => {
      const args = clicked(given);
      const place = args.slug ? studyPlace(String(args.slug)) : await askedPlace();
      if (place) {
        const query = new URLSearchParams(place.slice(place.indexOf('?')));
        await insertCell(app, notebooks, studyCell(query));
      }
    }
  });

  commands.addCommand(MAKE, {
    label: args => (args.slug === 'tour' ? 'Tour notebook' : 'Make Its Notebook'),
    caption: 'A notebook in this folder: a run, figures, things to try, claims',
    icon: args => (args.isMenu ? undefined : iconOf('tour')),
    execute: args => makeNotebook(app, String(clicked(args).slug ?? 'tour'))
  });
  commands.addCommand(CHECK, {
    label: 'Insert a Check of Its Claims',
    execute: args => insertCell(app, notebooks, checkCell(String(clicked(args).slug ?? 'flover')))
  });
  commands.addCommand(TRACE, {
    label: 'Open a trace…',
    caption: 'A run, a profiler\'s trace (.json, .json.gz) or an export of Nsight Systems (.sqlite)',
    icon: iconOf('trace'),
    isEnabled: () => !!documents,
    execute: async () => {
      const filter = (file: { name: string; type: string }) =>
        file.type === 'directory' || TRACES.test(file.name) ? {} : null;
      const { value } = await FileDialog.getOpenFiles({
        manager: documents!,
        title: 'Open a trace',
        filter
      });
      for (const { path, name } of (value ?? []).filter(file => file.type !== 'directory')) {
        const query = new URLSearchParams({ file: app.serviceManager.contents.localPath(path) });
        await commands.execute(OPEN, { place: `run?${query}`, title: name });
      }
    }
  });
  for (const [rank, command] of [OPEN, INSERT, MAKE, CHECK].entries()) {
    const selector = '.wb-side li[data-slug]';
    app.contextMenu.addItem({ command, selector, rank, args: { isMenu: true } });
  }

  const side = new SideBar({
    openStudy: ({ slug, title }) => void commands.execute(OPEN, { place: studyPlace(slug), title }),
    openRun: name =>
      void commands.execute(OPEN, { place: `run?${new URLSearchParams({ name })}`, title: name }),
    openFile: path => void commands.execute('docmanager:open', { path, factory: FACTORY }),
    insert: slug => void commands.execute(INSERT, { slug })
  });
  shell.add(side, 'left', { rank: 600 });
  commands.addCommand(SHOW, {
    label: 'Show Studies and Runs',
    execute: () => shell.activateById(side.id)
  });

  const factory = new RunFileFactory(path => app.serviceManager.contents.localPath(path), dark);
  factory.widgetCreated.connect((_, tab) => {
    void files.add(tab);
    tab.context.pathChanged.connect(() => void files.save(tab));
  });
  addRunFiles(app, factory);

  for (const [rank, page] of PLACES.entries()) {
    launcher?.add({ command: OPEN, args: page, category: CATEGORY, rank });
    palette?.addItem({ command: OPEN, args: { ...page, isPalette: true }, category: CATEGORY });
  }
  launcher?.add({ command: MAKE, args: { slug: 'tour' }, category: CATEGORY, rank: PLACES.length });
  launcher?.add({ command: TRACE, category: CATEGORY, rank: PLACES.length + 1 });
  palette?.addItem({ command: MAKE, args: { slug: 'tour' }, category: CATEGORY });
  palette?.addItem({ command: TRACE, category: CATEGORY });
  palette?.addItem({ command: INSERT, category: CATEGORY });
  palette?.addItem({ command: SHOW, category: CATEGORY });
  const addStudies = (built: ISystem[]) => {
    for (const { slug, title } of built) {
      const args = { place: studyPlace(slug), title, isPalette: true };
      palette?.addItem({ command: OPEN, args, category: `${CATEGORY}: Studies` });
    }
  };
  studies().then(addStudies, fault => console.warn('parallel-workbench: no catalogue', fault));

  restorer?.add(side, namespace);
  void restorer?.restore(tabs, {
    command: OPEN,
    args: tab => ({ place: tab.content.place, title: tab.title.label }),
    name: tab => tab.id
  });
  void restorer?.restore(files, {
    command: 'docmanager:open',
    args: tab => ({ path: tab.context.path, factory: FACTORY }),
    name: tab => tab.context.path
  });
}

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'parallel-workbench:plugin',
  description: 'Studies and runs of parallel LLM systems beside notebooks.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ICommandPalette, ILauncher, ILayoutRestorer, IThemeManager, IDocumentManager],
  activate
};

export default plugin;
