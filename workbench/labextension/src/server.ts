/** What this server tells: the catalogue's systems and its runs; and where its pages are. */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

/** One system of the catalogue. */
export type ISystem = { built: boolean } & Record<
  'slug' | 'title' | 'family' | 'paper' | 'about' | 'claim',
  string
>;

/** `files` below the server's folder (`changed` in s since 1970); `held` by the app, in no file. */
export interface IRuns {
  files: { path: string; bytes: number; changed: number }[];
  held: { name: string; study: string; state: string; events: number }[];
  complete: boolean;
}

async function ask<T>(what: string): Promise<T> {
  const settings = ServerConnection.makeSettings();
  const place = URLExt.join(settings.baseUrl, 'workbench/api', what);
  const answer = await ServerConnection.makeRequest(place, { cache: 'no-store' }, settings);
  if (!answer.ok) {
    throw await ServerConnection.ResponseError.create(answer);
  }
  return answer.json();
}

export const systems = async () => (await ask<{ systems: ISystem[] }>('catalogue')).systems;
export const runs = () => ask<IRuns>('runs');

/** A notebook made for a study; `tour`: the one that shows around. */
export const notebookOf = (name: string) =>
  ask<Record<string, unknown>>(`notebook/${encodeURIComponent(name)}`);

const top = () => URLExt.join(ServerConnection.makeSettings().baseUrl, 'workbench/app') + '/';

/** The address of a page of the app; `place` is its path and query, such as `study?slug=flover`. */
export function address(place: string, dark: boolean, width: number): string {
  const whole = new URL(top() + place, window.location.href);
  whole.searchParams.set('frame', width < 800 ? 'lab-tight' : width < 1150 ? 'lab-narrow' : 'lab');
  whole.searchParams.set('theme', dark ? 'dark' : 'light');
  return whole.href;
}

/** The inverse of `address`: path and query without what only says how the page is shown. */
export function placeOf(shown: string): string {
  const whole = new URL(shown);
  whole.searchParams.delete('frame');
  whole.searchParams.delete('theme');
  const start = new URL(top(), window.location.href).pathname.length;
  return whole.pathname.slice(start) + whole.search;
}
