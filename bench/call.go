package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	engines "github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/all"
)

const (
	callRounds  = 200
	callCrowd   = 1_000
	callTarget  = 1.0 // ms
	calledCode  = "1 + 1"
	callsModule = "internal/sandboxes/engine/wasm/quickjs/quickjs.wasm"
)

// measureCall makes calls: by the engine alone, and through the daemon with its policy and
// its two records. Beside them the same code by wazero alone: a new module of what was
// compiled, begun and asked.
func measureCall(ctx context.Context, b *bench) (err error) {
	caller := engines.Callers(filepath.Join(b.dir, "compiled"))[engines.DefaultCaller]
	defer func() { err = errors.Join(err, caller.Close(ctx)) }()
	bare, err := newBareCall(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.runtime.Close(ctx)) }()
	var alone, through, floor sample
	n := b.rounds(callRounds)
	for i := range n + 10 { // the first ones fill what is kept ready
		b.progress.round("calls", i, n)
		mine := stopwatch(func() { err = one(ctx, caller) })
		if err != nil {
			return err
		}
		wire := stopwatch(func() { _, err = client.Call(ctx, b.daemon.client, api.Call{Code: calledCode}) })
		if err != nil {
			return err
		}
		least := stopwatch(func() { err = bare.call(ctx) })
		if err != nil {
			return err
		}
		if i >= 10 {
			alone.add(mine)
			through.add(wire)
			floor.add(least)
		}
	}
	row := figure("call, the engine alone", unitTime, alone).beside("wazero alone", floor)
	b.table.add(row.target(fmt.Sprintf("<= %.0f ms", callTarget), row.Median <= callTarget))
	b.table.add(figure("  through the daemon, on record", unitTime, through).beside("wazero alone", floor))
	return b.crowdOfCalls(ctx, caller)
}

func one(ctx context.Context, caller engine.Caller) error {
	r, err := caller.Call(ctx, engine.Call{Code: calledCode})
	if err == nil && r.Value != "2" {
		err = fmt.Errorf("the call came to %q, %+v", r.Value, r.Failure)
	}
	return err
}

// crowdOfCalls asks for very many calls at one time.
func (b *bench) crowdOfCalls(ctx context.Context, caller engine.Caller) error {
	var all sync.WaitGroup
	errs := make([]error, callCrowd)
	began := time.Now()
	for i := range callCrowd {
		all.Go(func() { errs[i] = one(ctx, caller) })
	}
	all.Wait()
	var took sample
	took.add(time.Since(began))
	b.table.add(figure(fmt.Sprintf("  %d calls at once, all ended", callCrowd), unitTime, took))
	return errors.Join(errs...)
}

// bareCall is the same module by wazero and nothing of ours.
type bareCall struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
}

func newBareCall(ctx context.Context) (*bareCall, error) {
	code, err := os.ReadFile(callsModule)
	if err != nil {
		return nil, err
	}
	r := wazero.NewRuntime(ctx)
	module, err := r.CompileModule(ctx, code)
	if err != nil {
		return nil, err
	}
	hosts := map[string]wazero.HostModuleBuilder{}
	for _, f := range module.ImportedFunctions() {
		of, name, _ := f.Import()
		if hosts[of] == nil {
			hosts[of] = r.NewHostModuleBuilder(of)
		}
		hosts[of].NewFunctionBuilder().WithGoFunction(nothing{len(f.ResultTypes())}, f.ParamTypes(), f.ResultTypes()).Export(name)
	}
	for _, host := range hosts {
		if _, err := host.Instantiate(ctx); err != nil {
			return nil, err
		}
	}
	return &bareCall{r, module}, nil
}

// nothing is a function of the host that answers 0.
type nothing struct{ results int }

// Call implements wazero's GoFunction.
func (n nothing) Call(_ context.Context, stack []uint64) {
	for i := range n.results {
		stack[i] = 0
	}
}

func (c *bareCall) call(ctx context.Context) error {
	m, err := c.runtime.InstantiateModule(ctx, c.module, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
	if err != nil {
		return err
	}
	defer m.Close(ctx)
	if _, err := m.ExportedFunction("qjs_init").Call(ctx); err != nil {
		return err
	}
	at, err := m.ExportedFunction("wasm_malloc").Call(ctx, uint64(len(calledCode))+1)
	if err != nil {
		return err
	}
	if !m.Memory().WriteString(uint32(at[0]), calledCode+"\x00") {
		return errors.New("the module has no room")
	}
	_, err = m.ExportedFunction("qjs_eval").Call(ctx, at[0], uint64(len(calledCode)), at[0], 0)
	return err
}
