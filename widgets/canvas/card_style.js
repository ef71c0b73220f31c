// How the card around a canvas view looks.

export const STYLE = `
.pw{position:relative;display:flex;flex-direction:column;box-sizing:border-box;overflow:hidden;
 background:var(--paper);color:var(--ink);font:12px/1.4 var(--font);padding:8px 16px 10px;
 font-variant-numeric:tabular-nums;border-radius:6px}
.pw *{box-sizing:border-box}
.pw-head{display:flex;align-items:flex-start;gap:0 24px;flex-wrap:wrap;
 padding-right:36px}
.pw-title{font-size:16px;line-height:22px;font-weight:600;margin:0;flex:1 1 auto;
 letter-spacing:-.005em}
.pw-chip{display:inline-block;font-size:12px;font-weight:500;line-height:18px;padding:0 8px;
 margin-left:10px;border-radius:9px;border:1px dashed var(--faint);color:var(--faint);
 vertical-align:1px;letter-spacing:0;white-space:nowrap}
.pw-figures{display:flex;gap:0 18px;margin:0;flex-wrap:wrap}
.pw-figures>div{display:flex;flex-direction:row-reverse;align-items:baseline;gap:5px}
.pw-value{font-size:14px;line-height:22px;font-weight:600;white-space:nowrap}
.pw-label{font-size:12px;line-height:16px;color:var(--faint);white-space:nowrap}
.pw-menu{position:absolute;right:10px;top:5px}
.pw .pw-menu>button{width:28px;padding:0;border-color:transparent;color:var(--faint);font-size:16px}
.pw-list{position:absolute;right:0;top:30px;z-index:5;min-width:190px;padding:6px;
 background:var(--raised);border:1px solid var(--line);border-radius:6px;
 box-shadow:0 4px 16px rgba(0,0,0,.18)}
.pw-list button{display:block;width:100%;text-align:left;border:0}
.pw-list label{display:flex;justify-content:space-between;align-items:center;gap:12px;
 padding:3px 8px}
.pw button,.pw select{font:inherit;height:28px;padding:0 10px;color:var(--ink);
 background:transparent;border:1px solid var(--line);border-radius:5px;cursor:pointer}
.pw button:hover{background:var(--raised)}
.pw button:focus-visible,.pw select:focus-visible,.pw canvas:focus-visible{
 outline:2px solid var(--ink);outline-offset:1px}
.pw-tools{display:flex;align-items:center;gap:8px 16px;flex-wrap:wrap;margin:3px 0 5px;
 min-height:24px}
.pw.narrow .pw-tools{gap:4px 8px}
.pw.narrow .pw-tools :is(button,input){padding:0 7px;height:24px}
.pw.narrow .pw-legend{flex:1 1 0;flex-wrap:nowrap;overflow-x:auto;scrollbar-width:none;padding-right:16px;
 mask-image:linear-gradient(to right,#000 calc(100% - 20px),transparent)}
.pw.narrow .pw-legend.whole{flex-wrap:wrap;row-gap:1px;mask-image:none}
.pw.narrow .pw-legend.whole.many{display:grid;grid-auto-flow:column;grid-template-rows:repeat(3,auto);
 justify-content:start;mask-image:linear-gradient(to right,#000 calc(100% - 20px),transparent)}
.pw.narrow .pw-said{position:absolute;right:16px;bottom:10px;z-index:2;padding:3px 0 3px 10px;background:var(--paper);
 opacity:0;pointer-events:none;transition:opacity .15s}
.pw.narrow:hover .pw-said,.pw.narrow:focus-within .pw-said{opacity:1}
.pw.large .pw-head,.pw.large .pw-tools,.pw.large .pw-empty{zoom:1.4}
.pw.large .pw-tip{font-size:16px}
.pw-switch{display:flex}
.pw-find{font:inherit;width:150px;padding:2px 8px;border:1px solid var(--line);background:var(--paper);
  color:var(--ink);border-radius:5px}
.pw-find[hidden]{display:none}
.pw-found{color:var(--faint);white-space:nowrap}
.pw-found:empty{display:none}
.pw-switch button{border-radius:0;margin-left:-1px;color:var(--faint)}
.pw-switch button:first-child{border-radius:5px 0 0 5px;margin-left:0}
.pw-switch button:last-child{border-radius:0 5px 5px 0}
.pw-switch button:only-child{border-radius:5px}
.pw-switch button[aria-pressed=true]{background:var(--raised);color:var(--ink);font-weight:600;
 border-color:var(--faint);z-index:1}
.pw-head:has(.pw-lead:not(:empty)) .pw-title{flex-basis:100%}
.pw-lead{margin:1px auto 1px 0;font-size:14px;line-height:20px}
.pw-lead:empty{display:none}
.pw:fullscreen{padding:20px 28px;height:100% !important;border-radius:0}
.pw-said{margin-left:auto;font-size:12px;color:var(--faint)}
.pw-legend{display:flex;gap:4px 14px;flex-wrap:wrap;font-size:12px;color:var(--faint);
 align-items:center}
.pw-legend span{display:inline-flex;gap:6px;align-items:center;white-space:nowrap}
.pw-legend canvas{width:14px;height:14px}
.pw-grip{position:absolute;left:0;right:0;bottom:0;height:9px;cursor:ns-resize;touch-action:none}
.pw-grip::after{content:"";position:absolute;left:50%;bottom:3px;width:36px;height:3px;
 margin-left:-18px;border-radius:2px;background:var(--line)}
.pw-grip:hover::after,.pw-grip:focus-visible::after{background:var(--faint)}
.pw-grip:focus-visible{outline:2px solid var(--ink);outline-offset:-2px}
.pw-body{flex:1;min-height:0;position:relative}
.pw-surface{position:relative;min-width:0;min-height:0;overflow:hidden}
.pw-surface canvas{position:absolute;left:0;top:0;display:block;touch-action:none}
.pw button.pw-over{position:absolute;right:0;top:-4px;height:24px;z-index:2;display:none;
 background:var(--paper)}
.pw-empty{position:absolute;inset:0;display:none;align-items:center;justify-content:center;
 text-align:center;color:var(--faint);font-size:14px;padding:0 20%;background:var(--paper);z-index:3;
 border:1px dashed var(--line);border-radius:6px}
.pw-later{animation:pw-later 2.5s}
@keyframes pw-later{from,99%{opacity:0}to{opacity:1}}
.pw canvas.pw-selects{cursor:crosshair}
.pw-range{position:absolute;right:8px;bottom:28px;z-index:3;max-width:calc(100% - 16px);max-height:70%;
 overflow:auto;background:var(--raised);border:1px solid var(--line);border-radius:6px;padding:8px 12px;
 font-size:12px;line-height:18px;box-shadow:0 2px 10px rgba(0,0,0,.2)}
.pw-range-head{display:flex;align-items:center;gap:10px}
.pw-range-head span{color:var(--faint);margin-right:auto}
.pw .pw-range-head button{height:22px;padding:0 8px;font-size:12px}
.pw-range table{border-collapse:collapse;margin-top:4px;width:100%}
.pw-range th,.pw-range td{font-weight:400;text-align:right;padding:0 0 0 18px;white-space:nowrap}
.pw-range thead th{color:var(--faint)}
.pw-range tbody th{text-align:left;padding-left:0;max-width:240px;overflow:hidden;text-overflow:ellipsis}
.pw-wheel{position:absolute;left:50%;top:50%;transform:translate(-50%,-50%);z-index:4;padding:7px 14px;
 pointer-events:none;background:var(--ink);color:var(--paper);border-radius:6px;font-size:12px;opacity:0;
 transition:opacity .15s}
.pw-wheel.on{opacity:.9}
.pw-tip{position:absolute;display:none;z-index:4;pointer-events:none;max-width:360px;
 background:var(--raised);border:1px solid var(--line);border-radius:5px;padding:7px 10px;
 font-size:12px;line-height:17px;box-shadow:0 2px 10px rgba(0,0,0,.2);overflow-wrap:anywhere}
.pw-tip div:first-child{font-weight:600}
.pw-tip div+div{color:var(--faint)}`;
