/** A page of the app in a tab: it follows the lab's theme and tells where it has gone. */

import { IFrame, MainAreaWidget } from '@jupyterlab/apputils';
import { Signal } from '@lumino/signaling';
import { iconOf } from './icon';
import { address, placeOf } from './server';

const LOOK = 500; // milliseconds between looks at the page's address, which carries its knobs
const LATE = 20000; // milliseconds after which a page is shown as far as it is
const MAY = ['scripts', 'same-origin', 'downloads', 'forms', 'popups'].map(
  what => `allow-${what}` as IFrame.SandboxExceptions
);

/** The frame. `place`: the page's path and query, without theme; `moved`: it or the title has. */
export class PageFrame extends IFrame {
  readonly moved = new Signal<this, string>(this);

  constructor(
    public place: string,
    private _dark: boolean
  ) {
    super({ sandbox: MAY, referrerPolicy: 'same-origin' });
    this.addClass('wb-page');
    this._wait.className = 'wb-wait';
    this._wait.setAttribute('role', 'status');
    this._wait.textContent = 'Starting the workbench …';
    this.node.appendChild(this._wait);
    this._frame.title = 'Parallel Workbench';
    this._frame.addEventListener('load', this._loaded);
    window.addEventListener('message', this._heard);
    this._timer = window.setInterval(() => this._look(), LOOK);
  }

  setDark(dark: boolean): void {
    this._dark = dark;
    this._frame.contentWindow?.postMessage({ workbenchDark: dark }, window.location.origin);
  }

  dispose(): void {
    window.clearInterval(this._timer);
    window.removeEventListener('message', this._heard);
    super.dispose();
  }

  /** Opened when there is a width to open it for: a tab restored behind others waits. */
  protected onResize(message: { width: number }): void {
    const width = message.width > 0 ? message.width : this.node.offsetWidth;
    if (!this.url && width > 0) {
      this.url = address(this.place, this._dark, width);
    }
  }

  /** The page's document, once it is there. */
  private get _shown(): Document | null {
    return this._frame.contentDocument?.URL !== 'about:blank' ? this._frame.contentDocument : null;
  }

  private _look(): void {
    const place = this._shown ? placeOf(this._shown.URL) : this.place;
    if (place !== this.place) {
      this.place = place;
      this.moved.emit(this._title);
    }
  }

  /** Shown at once where it is no page of the app but a line that says why there is none. */
  private _loaded = (): void => {
    if (this._shown) {
      const isPage = this._shown.contentType === 'text/html';
      window.setTimeout(() => this._wait.remove(), isPage ? LATE : 0);
    }
  };

  /** The page is there and listens; the theme may have changed while it was loading. */
  private _heard = (event: MessageEvent): void => {
    const title = event.data?.workbenchReady;
    if (event.source === this._frame.contentWindow && typeof title === 'string') {
      this._wait.remove();
      this.setDark(this._dark);
      this._title = title;
      this.moved.emit(title);
    }
  };

  private _title = '';
  private readonly _timer: number;
  private readonly _wait = document.createElement('div');
  private readonly _frame = this.node.querySelector('iframe')!;
}

/** A tab of the main area with a page in it. */
export class PageTab extends MainAreaWidget<PageFrame> {
  constructor(place: string, title: string, dark: boolean) {
    super({ content: new PageFrame(place, dark) });
    this.title.label = title;
    this.title.icon = iconOf(place);
    this.title.closable = true;
    this.toolbar.hide();
    this.content.moved.connect((_, now) => void (this.title.label = now || title));
  }
}
