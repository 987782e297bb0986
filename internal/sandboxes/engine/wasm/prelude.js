// What code finds beside its language. It is evaluated once, when the image is made from
// which every call begins. Nothing here is a wall: host takes texts and believes none.
(function (host) {
  'use strict';
  const { parse, stringify } = JSON;
  const { defineProperty, freeze, hasOwn } = Object;
  const text = String, ErrorOf = Error, MathOf = Math, apply = Reflect.apply;
  const join = Array.prototype.join;
  const slice = text.prototype.slice;
  const said = 4096; // letters of what was thrown; the host cuts it to as many bytes

  const show = (v) => {
    if (typeof v === 'string') return v;
    if (typeof v !== 'object' || v === null) return text(v);
    if (v instanceof ErrorOf) return text(v.stack ? text(v) + '\n' + v.stack : v);
    try {
      const json = stringify(v);
      return json === undefined ? text(v) : json;
    } catch {
      return text(v);
    }
  };
  const writer = (to) => (...values) => {
    const shown = [];
    for (let i = 0; i < values.length; i++) defineProperty(shown, i, { value: show(values[i]), enumerable: true });
    host(to, apply(join, shown, [' ']) + '\n');
  };
  const out = writer('out'), err = writer('err');
  const hidden = (on, name, value) => defineProperty(on, name, { value, writable: true, configurable: true });

  hidden(globalThis, 'console', { log: out, info: out, debug: out, warn: err, error: err });
  class ToolError extends ErrorOf {
    constructor(message, approval) {
      super(message);
      if (approval) this.approval = approval;
    }
  }
  hidden(ToolError.prototype, 'name', 'ToolError');
  hidden(globalThis, 'ToolError', ToolError);
  hidden(globalThis, 'callTool', (name, args = {}) => {
    const answer = parse(host('tool', text(name), stringify(args) ?? ''));
    if (hasOwn(answer, 'error')) throw new ToolError(answer.error, answer.approval);
    return answer.result;
  });

  // Every call begins from one image, so each is given a seed of its own.
  let a, b, c, d;
  hidden(MathOf, 'random', () => {
    const t = (a + b | 0) + d | 0;
    d = d + 1 | 0;
    a = b ^ b >>> 9;
    b = c + (c << 3) | 0;
    c = (c << 21 | c >>> 11) + t | 0;
    return (t >>> 0) / 4294967296;
  });
  return freeze({
    seed: (s) => { [a, b, c, d] = parse(s); },
    encode: (v) => stringify(v),
    explain: (e) => {
      const cut = (v) => apply(slice, v, [0, said]);
      const tell = (get) => { try { return cut(text(get())); } catch { return ''; } };
      const isError = e instanceof ErrorOf;
      return stringify({
        name: isError ? tell(() => e.name) : '',
        message: isError ? tell(() => e) : cut(show(e)),
        stack: isError ? tell(() => e.stack) : '',
      });
    },
  });
})
