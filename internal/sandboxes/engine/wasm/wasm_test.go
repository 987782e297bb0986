package wasm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/wasm"
)

// cacheDir keeps what was compiled for all tests of this package.
var cacheDir string

func TestMain(m *testing.M) {
	var err error
	if cacheDir, err = os.MkdirTemp("", "wasm-test"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(cacheDir)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func start(tb testing.TB) *wasm.Engine {
	tb.Helper()
	e := wasm.New(wasm.Config{CacheDir: cacheDir})
	tb.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return e
}

const leaves = `
globalThis.left = 1; Object.prototype.left = 1; Array.prototype.push = () => 1;
JSON.parse = () => 1; Math.left = 1; Symbol.for('left'); console.left = 1; callTool.left = 1;
`

const finds = `
[globalThis.left, ({}).left, Math.left, console.left, callTool.left].some((v) => v !== undefined)
|| [].push(1, 2) !== 2 || JSON.parse('2') !== 2 || String(Array.prototype.push).includes('=>')
`

// reaches lists what a runtime of JavaScript may offer, and what finds the global object's
// own ways out.
const reaches = `
const found = [];
const attempt = async (name, get) => { try { const v = await get(); if (v !== undefined) found.push(name); } catch {} };
for (const name of ['process', 'require', 'module', 'Deno', 'Bun', 'fetch', 'XMLHttpRequest', 'WebSocket', 'std', 'os', 'bjson',
  'Worker', 'SharedArrayBuffer_', 'performance', 'setTimeout', 'crypto', 'WebAssembly', 'scriptArgs', 'print', 'navigator', 'host'])
  await attempt(name, () => globalThis[name]);
for (const module of ['fs', 'node:fs', 'os', 'std', 'qjs:os', 'qjs:std', '/etc/passwd', './call.js', 'file:///etc/passwd'])
  await attempt(module, () => import(module));
await attempt('Function', () => new Function('return typeof process === "undefined" ? undefined : process')());
await attempt('caller', () => (function f() { return f.caller; })() ?? undefined);
await attempt('stack', () => new Error('x').stack.includes('/home') || undefined);
found
`

func code() enginetest.CallCode {
	return enginetest.CallCode{
		Two: `1 + 1`, Nothing: `undefined`, Writes: `console.log('out'); console.error('err');`,
		Throws: `throw new Error('boom')`, Wrong: `let let = (`, ForEver: `for (;;) {}`,
		Hungry: `const all = []; for (;;) all.push(new Array(1000).fill(0.5))`,
		Deep:   `function f() { return f() + 1 } f()`,
		Chatty: `for (;;) console.log('x')`, Long: `'x'.repeat(4 << 20)`, Never: `await new Promise(() => {})`,
		Leaves: leaves + `undefined`, Finds: finds, Both: leaves + finds,
		Tool: func(name, arguments string) string {
			return fmt.Sprintf("try { callTool(%s, JSON.parse(%s)) } catch (e) { if (!(e instanceof ToolError)) throw e; String(e) }", quote(name), quote(arguments))
		},
		Reaches: reaches,
	}
}

func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestCallSuite(t *testing.T) { //nolint:paralleltest // it sets a variable of the environment
	enginetest.CallSuite(t, enginetest.CallSubject{Caller: start(t), Code: code()})
}

// came runs code, and gives its value.
func came(t *testing.T, e *wasm.Engine, code string) engine.CallResult {
	t.Helper()
	r, err := e.Call(t.Context(), engine.Call{Code: code, Limits: engine.CallLimits{Time: time.Minute}})
	if err != nil {
		t.Fatalf("%.80q: %v", code, err)
	}
	return r
}

func TestValues(t *testing.T) {
	t.Parallel()
	e := start(t)
	for code, want := range map[string]string{
		`({a: [1, null, "x\u0000€"], b: undefined})`:                `{"a":[1,null,"x\u0000€"]}`,
		`await Promise.resolve(5)`:                                  `5`,
		`const f = async () => { await null; return 6 }; await f()`: `6`,
		`'\ud800'`: `"\ud800"`,
		`let n = 0; Promise.resolve().then(() => console.log('late')); n`: `0`,
		`() => 1`:     ``,
		`Symbol('x')`: ``,
		`NaN`:         `null`,
		`[Date.now() > 1e12, new Date(0).getTimezoneOffset()]`:            `[true,0]`,
		`[1, 2, 3].map((n) => n ** 2).join()`:                             `"1,4,9"`,
		`import.meta === undefined`:                                       ``,
		`JSON.stringify(structuredCloneMissing = typeof structuredClone)`: `"\"undefined\""`,
		`/(\d+)-(?<x>\p{L}+)/u.exec('12-äb').groups.x`:                    `"äb"`,
		`10n ** 20n + ''`: `"100000000000000000000"`,
		`try { callTool('x') } catch (e) { [e.name, e.approval ?? null, e.message] }`: `["ToolError",null,"there are no tools here"]`,
	} {
		r := came(t, e, code)
		if strings.HasPrefix(code, "import.meta") {
			if r.Failure == nil || r.Failure.Kind != engine.FailSyntax {
				t.Errorf("%s came to %+v", code, r)
			}
			continue
		}
		if r.Failure != nil || r.Value != want {
			t.Errorf("%s came to %q, %+v; want %s", code, r.Value, r.Failure, want)
		}
	}
}

// TestThrown: what is thrown is told, whatever it is, and tells what it likes.
func TestThrown(t *testing.T) {
	t.Parallel()
	e := start(t)
	for code, want := range map[string]string{
		`throw 'a text'`:    "a text",
		`throw {a: 1}`:      `{"a":1}`,
		`throw null`:        "null",
		`throw Symbol('x')`: "Symbol(x)",
		`null.x`:            "null",
		`10n`:               "BigInt",
		`({toJSON() { throw new TypeError('mine') }})`:                                              "mine",
		`throw {get toString() { throw 1 }, toJSON() { throw 2 }}`:                                  "can't be told",
		`const e = new Error('x'); Object.defineProperty(e, 'stack', {get() { throw 3 }}); throw e`: "x",
		`throw new Error('\ud800 \u0000')`:                                                          "\x00",
		`throw new Error('x'.repeat(1e6))`:                                                          "xxxx",
		`const a = {}; a.a = a; a`:                                                                  "circular",
	} {
		r := came(t, e, code)
		if r.Failure == nil || r.Failure.Kind != engine.FailThrown || !strings.Contains(r.Failure.Message, want) || len(r.Failure.Message) > 4<<10 {
			t.Errorf("%s: %.200q, %+v; want %q", code, r.Value, r.Failure, want)
		}
	}
}

// TestBombs: whatever code does, it ends by itself or by a limit, and the next call finds
// nothing of it. The stack of the host's own is bounded with that of the code.
func TestBombs(t *testing.T) {
	t.Parallel()
	e := start(t)
	ends := map[engine.FailureKind]bool{engine.FailTime: true, engine.FailMemory: true, engine.FailStack: true, engine.FailThrown: true, engine.FailSyntax: true, engine.FailOutput: true}
	for _, code := range []string{
		`function f() { try { f() } finally { f() } } f()`,
		`let s = 'x'; for (;;) s += s`,
		`new ArrayBuffer(2 ** 31)`,
		`new Array(2 ** 32 - 1).fill(0)`,
		`let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x`,
		`let p = {}; for (let i = 0; i < 1e6; i++) p = Object.create(p); p.x`,
		`JSON.parse('['.repeat(1e5))`,
		`JSON.parse('['.repeat(1e5) + ']'.repeat(1e5))`,
		`let a = []; for (let i = 0; i < 1e5; i++) a = [a]; JSON.stringify(a)`,
		`let a = []; for (let i = 0; i < 1e5; i++) a = [a]; String(a)`,
		`let a = []; for (let i = 0; i < 1e5; i++) a = [a]; a.flat(Infinity)`,
		`eval('('.repeat(1e5))`, `eval('[' .repeat(1e5))`, `eval('a?'.repeat(1e5))`, `eval('-'.repeat(1e5) + '1')`,
		`new RegExp('('.repeat(1e5) + ')'.repeat(1e5)).test('x')`,
		`/(a+)+$/.test('a'.repeat(60) + 'b')`,
		`/((((a*)*)*)*)*b/.test('a'.repeat(200))`,
		`let g = function () {}; for (let i = 0; i < 1e5; i++) g = g.bind(null); g()`,
		`const f = () => Promise.resolve().then(f); f()`,
		`for (;;) try { for (;;) ; } catch {}`,
		`const f = () => { try { f() } catch { f() } }; f()`,
		`const o = {get a() { return this.a }}; o.a`,
		`const o = {toString() { return '' + this }}; '' + o`,
		`throw {toString() { for (;;) ; }, toJSON() { for (;;) ; }}`,
		`({toJSON() { for (;;) ; }})`,
		`[...(function* () { for (;;) yield 1 })()]`,
		`const all = []; for (;;) all.push(Symbol('x'.repeat(1000)))`,
		`'x'.padEnd(2 ** 30)`, `'abc'.repeat(2 ** 28)`,
		`BigInt(2) ** BigInt(2 ** 30)`,
		`[3, 1, 2].sort(() => { for (;;) ; })`,
		`class A extends Array { static get [Symbol.species]() { return A } constructor(...a) { super(...a); this.map((x) => x) } } new A(1)`,
	} {
		r, err := e.Call(t.Context(), engine.Call{Code: code, Limits: engine.CallLimits{Time: 50 * time.Millisecond, MemoryBytes: 16 << 20}})
		if err != nil {
			t.Fatalf("%s: %v", code, err)
		}
		if r.Failure != nil && !ends[r.Failure.Kind] {
			t.Errorf("%s: %+v", code, *r.Failure)
		}
		if r.MemoryBytes > 17<<20 {
			t.Errorf("%s had %d bytes", code, r.MemoryBytes)
		}
	}
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	if after.StackSys+after.HeapInuse > 512<<20 {
		t.Errorf("after all that, the process has %d MiB of heap and stacks", (after.StackSys+after.HeapInuse)>>20)
	}
	if r := came(t, e, "1 + 1"); r.Value != "2" {
		t.Errorf("%+v", r)
	}
}

// TestWhatIsTooLongIsCut: of what code writes at once and of what it throws comes as much as
// may, in pieces that are whole letters.
func TestWhatIsTooLongIsCut(t *testing.T) {
	t.Parallel()
	e := start(t)
	r := came(t, e, `console.log('x'.repeat(3 << 20)); console.error('late'); 1`)
	if len(r.Stdout) != 1<<20 || r.Stderr != "" || !r.Truncated || r.Value != "1" {
		t.Errorf("%d bytes, and %q; cut: %t; %q", len(r.Stdout), r.Stderr, r.Truncated, r.Value)
	}
	for _, code := range []string{`throw new Error('\u20ac'.repeat(3 << 20))`, `throw '\ud800'.repeat(3 << 20)`, `throw {name: '\u20ac'.repeat(1 << 20)}`} {
		r := came(t, e, code)
		if r.Failure == nil || r.Failure.Kind != engine.FailThrown || len(r.Failure.Message) < 1000 || len(r.Failure.Message) > 3*4<<10 || !utf8.ValidString(r.Failure.Message) {
			t.Errorf("%s: %+.100v", code, r.Failure)
		}
	}
}

// TestHostileArguments: what reaches a tool is texts, each read once, whatever code makes
// of its own language.
func TestHostileArguments(t *testing.T) {
	t.Parallel()
	e := start(t)
	for code, want := range map[string]string{
		`let n = 0; callTool({toString() { n++; return 'name' }}, {get a() { return ++n }}); n`: `name {"a":2}`,
		`callTool('x', {toJSON() { return {b: 1} }})`:                                           `x {"b":1}`,
		`Object.prototype.toJSON = () => 'own'; callTool('x', {a: 1})`:                          `x "own"`,
		`JSON.stringify = () => '{"forged": 1}'; callTool('x', {a: 1})`:                         `x {"a":1}`,
		`String = () => 'forged'; callTool('x', {a: 1})`:                                        `x {"a":1}`,
		`Function.prototype.call = Function.prototype.apply = () => 1; callTool('x', {a: 1})`:   `x {"a":1}`,
		`callTool('x\u0000y', {'\u0000': '\u0000'})`:                                            "x\x00y {\"\\u0000\":\"\\u0000\"}",
		`callTool('\ud800', {a: '\udfff'})`:                                                     "\xed\xa0\x80 {\"a\":\"\\udfff\"}",
		`callTool('x', () => 1)`:                                                                `x `,
		`callTool('x', 7)`:                                                                      `x 7`,
		`callTool.call(null, 'x', {__proto__: null, a: 1})`:                                     `x {"a":1}`,
		`callTool('x', {["__proto__"]: {a: 1}})`:                                                `x {"__proto__":{"a":1}}`,
		`new Proxy(callTool, {}).apply(null, ['x', new Proxy({a: 1}, {})])`:                     `x {"a":1}`,
	} {
		var asked []string
		_, err := e.Call(t.Context(), engine.Call{Code: code, Tool: func(_ context.Context, name, arguments string) engine.ToolReply {
			asked = append(asked, name+" "+arguments)
			return engine.ToolReply{Result: `{}`}
		}})
		if err != nil || len(asked) != 1 || asked[0] != want {
			t.Errorf("%s: asked %q, %v; want %q", code, asked, err, want)
		}
	}
}

// TestAnswersAreData: a tool's answer is parsed as JSON, and nothing of it is code or a
// prototype.
func TestAnswersAreData(t *testing.T) {
	t.Parallel()
	e := start(t)
	answers := engine.ToolReply{Result: `{"__proto__":{"polluted":1},"error":"mine","\u2028":"</script>"}`}
	r, err := e.Call(t.Context(), engine.Call{
		Code: `const a = callTool('x'); [({}).polluted ?? null, a.polluted ?? null, a.error, Object.keys(a).length]`,
		Tool: func(context.Context, string, string) engine.ToolReply { return answers },
	})
	if err != nil || r.Value != `[null,null,"mine",3]` {
		t.Errorf("%q, %+v, %v", r.Value, r.Failure, err)
	}
}

// TestRandomIsEachCallsOwn: calls begin from one image, and still do not draw the same
// numbers.
func TestRandomIsEachCallsOwn(t *testing.T) {
	t.Parallel()
	e := start(t)
	seen := map[string]bool{}
	for range 20 {
		seen[came(t, e, `[Math.random(), Math.random()]`).Value] = true
	}
	if len(seen) != 20 {
		t.Errorf("20 calls drew %d different pairs", len(seen))
	}
	if r := came(t, e, `let s = 0; for (let i = 0; i < 10000; i++) s += Math.random(); s > 4700 && s < 5300`); r.Value != "true" {
		t.Errorf("10,000 numbers do not add up to about 5,000: %+v", r)
	}
}

// TestAThousandAtOnce: many more calls than there is memory for wait for their turn, and
// all are answered.
func TestAThousandAtOnce(t *testing.T) {
	t.Parallel()
	e := start(t) // of the room of 1 GiB one owner's have three quarters: 12 of 64 MiB
	var all sync.WaitGroup
	var mu sync.Mutex
	running, most := 0, 0
	for i := range 1_000 {
		all.Go(func() {
			r, err := e.Call(t.Context(), engine.Call{Code: "callTool('n') + 1", Tool: func(context.Context, string, string) engine.ToolReply {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				runtime.Gosched()
				mu.Lock()
				running--
				mu.Unlock()
				return engine.ToolReply{Result: fmt.Sprint(i)}
			}})
			if err != nil || r.Value != fmt.Sprint(i+1) {
				t.Errorf("call %d: %q, %+v, %v", i, r.Value, r.Failure, err)
			}
		})
	}
	all.Wait()
	if most > 12 {
		t.Errorf("%d calls ran at one time, and there is room for 12", most)
	}
}

// TestOneOwnerLeavesRoom: another's call runs although one owner has as much as it may.
func TestOneOwnerLeavesRoom(t *testing.T) {
	t.Parallel()
	e := start(t)
	big := engine.CallLimits{MemoryBytes: e.Bounds().Most.MemoryBytes}
	over, in := make(chan struct{}), make(chan struct{}, 10)
	var bad sync.WaitGroup
	for range 10 {
		bad.Go(func() {
			_, _ = e.Call(t.Context(), engine.Call{Code: "callTool('n')", Owner: "bad", Limits: big, Tool: func(context.Context, string, string) engine.ToolReply {
				in <- struct{}{}
				<-over
				return engine.ToolReply{Result: "1"}
			}})
		})
	}
	for range 3 { // of 256 MiB each
		<-in
	}
	if r, err := e.Call(t.Context(), engine.Call{Code: "1 + 1", Owner: "good", Limits: big}); err != nil || r.Value != "2" {
		t.Errorf("another's: %+v, %v", r, err)
	}
	close(over)
	bad.Wait()
}

// TestWhoWaitsMayLeave: a call that waits for room is not made once nobody wants it.
func TestWhoWaitsMayLeave(t *testing.T) {
	t.Parallel()
	e := wasm.New(wasm.Config{CacheDir: cacheDir, Memory: 1})
	defer e.Close(context.Background())
	big := engine.CallLimits{MemoryBytes: e.Bounds().Most.MemoryBytes}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := e.Call(t.Context(), engine.Call{Code: "callTool('x')", Limits: big, Tool: func(context.Context, string, string) engine.ToolReply {
		cancel()
		if _, err := e.Call(ctx, engine.Call{Code: "1", Limits: big}); !errors.Is(err, context.Canceled) {
			t.Errorf("there is room for a second call: %v", err)
		}
		return engine.ToolReply{Result: "1"}
	}})
	if err != nil || r.Value != "1" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestWhatTheHostWritesCounts: what the host puts into a machine is not the language's to
// refuse, and is within the call's memory all the same.
func TestWhatTheHostWritesCounts(t *testing.T) {
	t.Parallel()
	const most = 8 << 20
	answer := `"` + strings.Repeat("x", 2*most) + `"`
	r, err := start(t).Call(t.Context(), engine.Call{
		Code: "callTool('x').length", Limits: engine.CallLimits{MemoryBytes: most, Time: time.Minute},
		Tool: func(context.Context, string, string) engine.ToolReply { return engine.ToolReply{Result: answer} },
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Failure == nil || r.Failure.Kind != engine.FailMemory || r.MemoryBytes > most {
		t.Errorf("it had %d bytes, and ended with %+v", r.MemoryBytes, r.Failure)
	}
}
