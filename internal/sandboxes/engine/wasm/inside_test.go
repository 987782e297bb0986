package wasm

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// TestImports: the module asks for what the engine answers, and for nothing else.
func TestImports(t *testing.T) {
	t.Parallel()
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter())
	defer r.Close(t.Context())
	m, err := r.CompileModule(t.Context(), quickjs)
	if err != nil {
		t.Fatal(err)
	}
	answered := map[string]bool{}
	for module, functions := range imports() {
		for _, f := range functions {
			answered[module+"."+f.name] = false
		}
	}
	for _, f := range m.ImportedFunctions() {
		module, name, _ := f.Import()
		if _, known := answered[module+"."+name]; !known {
			t.Errorf("the module asks for %s.%s", module, name)
		}
		answered[module+"."+name] = true
	}
	for name, asked := range answered {
		if !asked {
			t.Errorf("the engine answers %s, which the module does not ask for", name)
		}
	}
	if len(m.ImportedMemories()) > 0 {
		t.Error("the module has a memory of somebody else's")
	}
}

// TestOneMachineTwiceWouldLeak is the positive control of "nothing stays": in one machine a
// second piece of code finds what the first has left.
func TestOneMachineTwiceWouldLeak(t *testing.T) {
	t.Parallel()
	shop, err := openWorkshop(t.Context(), Config{Ready: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer shop.compiler.closeCompiler(context.Background())
	m, err := shop.machine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer m.closeMachine(t.Context())
	limits := engine.CallLimits{Time: time.Minute, Life: time.Minute, MemoryBytes: defaultMemory, OutputBytes: defaultOutput}
	if _, err := m.runCall(t.Context(), engine.Call{Code: "globalThis.left = 7", Limits: limits}); err != nil {
		t.Fatal(err)
	}
	r, err := m.runCall(t.Context(), engine.Call{Code: "globalThis.left", Limits: limits})
	if err != nil || r.Value != "7" {
		t.Errorf("the same machine came to %q, %+v, %v: the test of what stays would see nothing", r.Value, r.Failure, err)
	}
}

// TestWildAddresses: a module whose memory says anything gets no byte that is not its own,
// and the host goes on.
func TestWildAddresses(t *testing.T) {
	t.Parallel()
	shop, err := openWorkshop(t.Context(), Config{Ready: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer shop.compiler.closeCompiler(context.Background())
	for _, args := range [][2]uint32{{0, 0}, {1, 0xffffffff}, {1, 0xfffffffc}, {5, 0}, {0xffffffff, 0}, {3, 16}, {2, 1 << 20}, {1, 4}} {
		m, err := shop.machine(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m.ctx = context.WithValue(t.Context(), machineKey{}, m)
		m.call.Tool = func(context.Context, string, string) engine.ToolReply {
			t.Errorf("%v became a call of a tool", args)
			return engine.ToolReply{}
		}
		func() {
			defer func() { _ = recover() }() // errStopped, which the module's runtime would take
			m.answerAsked(args[0], args[1])
		}()
		m.closeMachine(t.Context())
	}
}

// flat is a memory.
type flat []byte

func (f flat) Read(at, count uint32) ([]byte, bool) {
	if uint64(at)+uint64(count) > uint64(len(f)) {
		return nil, false
	}
	return f[at : at+count], true
}

func (f flat) ReadUint32Le(at uint32) (uint32, bool) {
	b, ok := f.Read(at, 4)
	if !ok {
		return 0, false
	}
	return binary.LittleEndian.Uint32(b), true
}

// FuzzDecode: whatever a memory says, what is read of it lies in it and within its bounds.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{4, 0, 0, 0, 'a', 'b', 0, 0}, uint32(1), uint32(0), uint32(2))
	f.Add([]byte{}, uint32(4), uint32(0xfffffff0), uint32(0xffffffff))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, uint32(1), uint32(0), uint32(16))
	f.Fuzz(func(t *testing.T, data []byte, argc, argv, size uint32) {
		m := flat(data)
		all, ok := addressesAt(m, argc, argv)
		if !ok {
			return
		}
		if len(all) != int(argc) || argc > maxArguments || uint64(argv)+4*uint64(argc) > uint64(len(data)) && argc > 0 {
			t.Fatalf("%d addresses of %d at %d in %d bytes", len(all), argc, argv, len(data))
		}
		for _, at := range all {
			text, ok := textAt(m, at, size, maxVerb)
			if ok && (uint64(at)+uint64(size) > uint64(len(data)) || len(text) != int(size) || len(text) > maxVerb) {
				t.Fatalf("%q at %d, %d bytes", text, at, size)
			}
			if len(printableText(text)) > 3*maxSaid {
				t.Fatal("too long")
			}
		}
	})
}

func BenchmarkCall(b *testing.B) {
	e := New(Config{CacheDir: b.TempDir()})
	defer e.Close(context.Background())
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		if r, err := e.Call(b.Context(), engine.Call{Code: "1 + 1"}); err != nil || r.Value != "2" {
			b.Fatal(r, err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns") // the first compiles
}

// TestOnlyTheBeginningIsCopied: of a text that is longer than what is kept, the host copies
// what it keeps, and knows how long all of it is.
func TestOnlyTheBeginningIsCopied(t *testing.T) {
	t.Parallel()
	shop, err := openWorkshop(t.Context(), Config{Ready: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer shop.compiler.closeCompiler(context.Background())
	m, err := shop.machine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer m.closeMachine(t.Context())
	const size = 8 << 20
	value, err := m.newString(t.Context(), strings.Repeat("x", size))
	if err != nil {
		t.Fatal(err)
	}
	for _, most := range []int{-1, 0, 100, size, 2 * size} {
		text, all, err := m.beginning(t.Context(), value, most)
		if err != nil || all != size && most >= 0 || len(text) != min(max(0, most), size) {
			t.Errorf("of at most %d bytes %d came, of %d (%v)", most, len(text), all, err)
		}
		if text, ok, err := m.readText(t.Context(), value, most); err != nil || ok != (most >= size) || ok && len(text) != size {
			t.Errorf("as a whole text of at most %d bytes: %t, %d bytes (%v)", most, ok, len(text), err)
		}
	}
	undefined, err := m.callFunction(t.Context(), "qjs_get_undefined")
	if err != nil {
		t.Fatal(err)
	}
	if text, all, err := m.beginning(t.Context(), undefined, 100); err != nil || text != "" || all == 0 {
		t.Errorf("of what is no text %q came, of %d (%v)", text, all, err)
	}
}
