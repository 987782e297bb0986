package wasm

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// What WASI's functions answer.
const (
	wasiDone  = 0
	wasiBadFD = 8
	wasiFault = 21
)

// machineKey carries the machine that asks in a call's context.
type machineKey struct{}

func machineOf(ctx context.Context) *machine {
	m, _ := ctx.Value(machineKey{}).(*machine)
	return m
}

// The module's types.
const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

// imported is a function that the module imports.
type imported struct {
	name            string
	params, results []api.ValueType
	do              func(ctx context.Context, mod api.Module, stack []uint64)
}

// imports are all that the module has of the host, by the module that it asks for.
func imports() map[string][]imported {
	answer := func(with uint64) func(context.Context, api.Module, []uint64) {
		return func(_ context.Context, _ api.Module, stack []uint64) { stack[0] = with }
	}
	one := []api.ValueType{i32}
	return map[string][]imported{
		"env": {
			{"host_call", []api.ValueType{i32, i32, i32, i32, i32}, one, hostCall},
			{"host_interrupt", nil, one, hostInterrupt},
			{"host_promise_rejection", []api.ValueType{i32, i32, i32}, nil, func(context.Context, api.Module, []uint64) {}},
			{"host_module_normalize", []api.ValueType{i32, i32}, one, answer(0)}, // there are no modules to import
			{"host_module_load", []api.ValueType{i32, i32}, one, answer(0)},
			{"host_get_timezone_offset", []api.ValueType{i32, i32}, one, answer(0)},
		},
		"wasi_snapshot_preview1": {
			{"clock_time_get", []api.ValueType{i32, i64, i32}, one, clockTimeGet},
			{"random_get", []api.ValueType{i32, i32}, one, randomGet},
			{"fd_close", []api.ValueType{i32}, one, answer(wasiBadFD)},
			{"fd_fdstat_get", []api.ValueType{i32, i32}, one, answer(wasiBadFD)},
			{"fd_seek", []api.ValueType{i32, i64, i32, i32}, one, answer(wasiBadFD)},
			{"fd_write", []api.ValueType{i32, i32, i32, i32}, one, answer(wasiBadFD)},
		},
	}
}

// offerImports has a runtime answer what the module imports.
func offerImports(ctx context.Context, r wazero.Runtime) error {
	for module, functions := range imports() {
		b := r.NewHostModuleBuilder(module)
		for _, f := range functions {
			b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(f.do), f.params, f.results).Export(f.name)
		}
		if _, err := b.Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}

// hostCall is host(verb, text...) of the prelude: (name, its length, this, how many
// arguments, their addresses).
func hostCall(ctx context.Context, _ api.Module, stack []uint64) {
	stack[0] = machineOf(ctx).answerAsked(uint32(stack[3]), uint32(stack[4]))
}

// hostInterrupt is asked every so often while code runs: 1 ends it.
func hostInterrupt(ctx context.Context, _ api.Module, stack []uint64) {
	stack[0] = 0
	if m := machineOf(ctx); m != nil && m.ran.isOver() {
		stack[0] = 1
	}
}

// clockTimeGet gives every clock the time of day to a millisecond: what is finer measures
// others.
func clockTimeGet(_ context.Context, mod api.Module, stack []uint64) {
	var now [8]byte
	binary.LittleEndian.PutUint64(now[:], uint64(time.Now().UnixMilli())*uint64(time.Millisecond))
	stack[0] = putBytes(mod, uint32(stack[2]), now[:])
}

// maxRandom bounds what is asked for at one time.
const maxRandom = 4 << 10

func randomGet(_ context.Context, mod api.Module, stack []uint64) {
	at, size := uint32(stack[0]), uint32(stack[1])
	if size > maxRandom {
		stack[0] = wasiFault
		return
	}
	random := make([]byte, size)
	rand.Read(random) // never fails: it ends the process instead
	stack[0] = putBytes(mod, at, random)
}

func putBytes(mod api.Module, at uint32, data []byte) uint64 {
	if !mod.Memory().Write(at, data) {
		return wasiFault
	}
	return wasiDone
}
