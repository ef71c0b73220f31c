/** The side bar: find a system, open it, put it in a notebook; the runs of this server. */

import { ReactWidget } from '@jupyterlab/apputils';
import { notebookIcon, refreshIcon } from '@jupyterlab/ui-components';
import * as React from 'react';
import { workbenchIcon } from './icon';
import { IRuns, ISystem, runs, systems } from './server';

const LOOK = 5000; // milliseconds between looks at the runs while the side bar is shown

/** What it asks for; it knows nothing of tabs or notebooks. */
export interface IActions {
  openStudy(system: ISystem): void;
  openRun(name: string): void;
  openFile(path: string): void;
  insert(slug: string): void;
}

interface IRow extends Record<'id' | 'name' | 'more' | 'hint', string> {
  live?: boolean;
  slug?: string;
  open?: () => void;
  insert?: () => void;
}

/** Systems in which every word occurs, those with it in their name first. */
function found(all: ISystem[], text: string, family: string, built: boolean): ISystem[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (...where: string[]) =>
    words.every(word => where.join(' ').toLowerCase().includes(word));
  const named = (s: ISystem) => Number(has(s.slug, s.title));
  return all
    .filter(s => (!family || s.family === family) && (!built || s.built))
    .filter(s => has(s.slug, s.title, s.family, s.paper, s.about, s.claim))
    .sort((a, b) => named(b) - named(a));
}

function systemRow(system: ISystem, act: IActions): IRow {
  const { slug: id, title: name, paper, about, built } = system;
  const more = built ? about : `not built yet · ${about}`;
  const acts = built && { slug: id, open: () => act.openStudy(system), insert: () => act.insert(id) };
  return { id, name, more, hint: `${paper}\n\n${about}`, ...acts };
}

function runRows({ held, files }: IRuns, act: IActions): IRow[] {
  const time = { dateStyle: 'medium', timeStyle: 'short' } as const;
  const size = (bytes: number) =>
    bytes < 1 << 20 ? `${Math.ceil(bytes / 1024)} KiB` : `${Math.round(bytes / (1 << 20))} MiB`;
  return [
    ...held.map(run => ({
      id: `held ${run.name}`,
      name: run.name,
      more: `${run.state === 'closed' ? 'ended' : run.state} · ${run.events} events`,
      hint: 'held by the app, in no file',
      live: run.state !== 'closed',
      open: () => act.openRun(run.name)
    })),
    ...files.map(run => ({
      id: run.path,
      name: run.path.split('/').pop()!,
      more: `${new Date(run.changed * 1000).toLocaleString([], time)} · ${size(run.bytes)}`,
      hint: run.path,
      open: () => act.openFile(run.path)
    }))
  ];
}

/** Rows one goes through with the arrow keys; only the first of all is in the order of Tab. */
function Rows(props: { rows: IRow[]; label: string; isFirst: boolean }): JSX.Element {
  return (
    <ul aria-label={props.label}>
      {props.rows.map(({ id, name, more, hint, live, slug, open, insert }, place) => (
        <li key={id} data-slug={slug} data-title={name}>
          <button
            className="wb-open"
            title={hint}
            aria-disabled={!open}
            tabIndex={props.isFirst && place === 0 ? 0 : -1}
            onClick={open}
          >
            <span className="wb-name">{name}</span>
            <span className={live ? 'wb-more wb-live' : 'wb-more'}>{more}</span>
          </button>
          {insert && (
            <button
              className="wb-insert"
              title={`Insert ${name} into notebook`}
              onClick={insert}
            >
              <notebookIcon.react tag="span" width="16px" height="16px" />
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}

function keyed(event: React.KeyboardEvent<HTMLElement>): void {
  const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
  if (step !== undefined) {
    const rows = [...event.currentTarget.querySelectorAll<HTMLButtonElement>('.wb-open')];
    const here = rows.findIndex(row => row.parentElement!.contains(document.activeElement));
    rows[Math.max(0, Math.min(rows.length - 1, here + step))]?.focus();
    event.preventDefault();
  }
}

function Side(props: { act: IActions; isShown: () => boolean }): JSX.Element {
  const [all, setAll] = React.useState<ISystem[]>([]);
  const [has, setHas] = React.useState<IRuns>({ files: [], held: [], complete: true });
  const [text, setText] = React.useState('');
  const [family, setFamily] = React.useState('');
  const [built, setBuilt] = React.useState(true);
  const [fault, setFault] = React.useState('');
  const failed = (error: Error) => setFault(`The server does not answer (${error.message}).`);
  const look = () => void runs().then(now => (setHas(now), setFault('')), failed);
  React.useEffect(() => {
    systems().then(setAll, failed);
    look();
    const timer = setInterval(() => props.isShown() && look(), LOOK);
    return () => clearInterval(timer);
  }, []);
  const shown = found(all, text, family, built);
  const rows = runRows(has, props.act);
  const families = (of: ISystem[]) => [...new Set(of.map(system => system.family))];
  return (
    <>
      <div className="wb-find" role="search">
        <input
          type="search"
          placeholder="A name, a paper, an idea"
          aria-label="Search systems"
          onChange={event => setText(event.target.value)}
        />
        <div className="wb-which">
          <select aria-label="Family" onChange={event => setFamily(event.target.value)}>
            <option value="">all families</option>
            {families(all).map(name => <option key={name}>{name}</option>)}
          </select>
          <label>
            <input type="checkbox" checked={built} onChange={() => setBuilt(!built)} />
            built
          </label>
        </div>
      </div>
      <div className="wb-lists">
        {fault && <p role="alert">{fault}</p>}
        <section onKeyDown={keyed}>
          <h3>
            Runs
            <button title="Look for runs again" onClick={look}>
              <refreshIcon.react tag="span" width="16px" height="16px" />
            </button>
          </h3>
          {!rows.length && <p>None yet. Open a study, or save a .run file in this folder.</p>}
          <Rows rows={rows} label="Runs" isFirst={true} />
          {!has.complete && <p>Only some of many are listed.</p>}
        </section>
        <section onKeyDown={keyed}>
          <h3>{`Systems (${shown.length} of ${all.length})`}</h3>
          {!shown.length && <p>None has these words. Try fewer, or another family.</p>}
          {families(shown).map((name, place) => (
            <React.Fragment key={name}>
              <h4>{name}</h4>
              <Rows
                rows={shown.filter(s => s.family === name).map(s => systemRow(s, props.act))}
                label={name}
                isFirst={place === 0}
              />
            </React.Fragment>
          ))}
        </section>
      </div>
    </>
  );
}

/** The side bar as a widget of the lab. */
export class SideBar extends ReactWidget {
  constructor(private _act: IActions) {
    super();
    this.id = 'parallel-workbench-side';
    this.addClass('wb-side');
    this.title.icon = workbenchIcon;
    this.title.caption = 'Parallel Workbench';
  }

  protected onActivateRequest(): void {
    this.node.querySelector<HTMLInputElement>('input[type=search]')?.focus();
  }

  protected render(): JSX.Element {
    return <Side act={this._act} isShown={() => this.isVisible} />;
  }
}
