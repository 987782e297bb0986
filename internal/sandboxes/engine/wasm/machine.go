package wasm

import (
	"context"
	"errors"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// machine is a module with a memory of its own, for one call. One goroutine has it.
type machine struct {
	image  *image
	module api.Module
	memory *memory
	known  map[string]api.Function

	// Of the call that it runs.
	ctx       context.Context //nolint:containedctx // what it asks of the host belongs to its one call
	call      engine.Call
	ran       stopwatch
	out, err  strings.Builder
	truncated bool
	stopped   *engine.CallFailure // by the host, in the middle; nil: it was not
}

// errStopped ends a machine from within what it asked of the host.
var errStopped = errors.New("the host stopped the call")

// callFunction calls a function of the module. After an error the module is broken.
func (m *machine) callFunction(ctx context.Context, name string, args ...uint64) (uint32, error) {
	f := m.known[name]
	if f == nil {
		if f = m.module.ExportedFunction(name); f == nil {
			return 0, errors.New("the module has no function " + name)
		}
		m.known[name] = f
	}
	results, err := f.Call(ctx, args...)
	if err != nil || len(results) == 0 {
		return 0, err
	}
	return uint32(results[0]), nil
}

// askModule asks the module something that is answered with yes or no.
func (m *machine) askModule(ctx context.Context, question string, args ...uint64) (bool, error) {
	answer, err := m.callFunction(ctx, question, args...)
	return answer != 0, err
}

// errNoRoom: the machine's memory is full.
var errNoRoom = errors.New("the call's memory is full")

// writeText copies a text into the machine, with a zero behind it; whoever asks frees it.
func (m *machine) writeText(ctx context.Context, text string) (at uint32, err error) {
	at, err = m.callFunction(ctx, "wasm_malloc", uint64(len(text))+1)
	if err == nil && at == 0 {
		err = errNoRoom
	}
	if err != nil {
		return 0, err
	}
	if !m.module.Memory().WriteString(at, text) || !m.module.Memory().WriteByte(at+uint32(len(text)), 0) {
		return 0, errNoRoom
	}
	return at, nil
}

// newString makes a text of the language's own; the value is the caller's.
func (m *machine) newString(ctx context.Context, text string) (value uint32, err error) {
	at, err := m.writeText(ctx, text)
	if err != nil {
		return 0, err
	}
	value, err = m.callFunction(ctx, "qjs_new_string", uint64(at), uint64(len(text)))
	if err != nil {
		return 0, err
	}
	if value == 0 {
		return 0, errNoRoom
	}
	_, err = m.callFunction(ctx, "wasm_free", uint64(at))
	return value, err
}

// readText reads a value that is a text, of at most so many bytes; false: it is none, or
// longer.
func (m *machine) readText(ctx context.Context, value uint32, most int) (text string, ok bool, err error) {
	text, size, err := m.beginning(ctx, value, most)
	if err != nil || size != uint64(len(text)) {
		return "", false, err
	}
	return text, true, nil
}

// notText is the size of what is no text.
const notText = 1 << 32

// beginning reads the first bytes of a value that is a text, at most so many: the host
// copies no more than it keeps. size is that of all of it.
func (m *machine) beginning(ctx context.Context, value uint32, most int) (text string, size uint64, err error) {
	if is, err := m.askModule(ctx, "qjs_is_string", uint64(value)); !is || err != nil {
		return "", notText, err
	}
	at, err := m.callFunction(ctx, "qjs_get_string_len", uint64(value), uint64(m.image.scratch))
	if err != nil {
		return "", notText, err
	}
	if at == 0 {
		return "", notText, errNoRoom
	}
	size = notText
	if whole, ok := m.module.Memory().ReadUint32Le(m.image.scratch); ok {
		if text, ok = textAt(m.module.Memory(), at, min(whole, uint32(max(0, most))), most); ok {
			size = uint64(whole)
		}
	}
	_, err = m.callFunction(ctx, "qjs_free_cstring", uint64(at))
	return text, size, err
}

// applyFunction calls a function of the prelude with one value.
func (m *machine) applyFunction(ctx context.Context, function, value uint32) (result uint32, err error) {
	undefined, err := m.callFunction(ctx, "qjs_get_undefined")
	if err != nil {
		return 0, err
	}
	if !m.module.Memory().WriteUint32Le(m.image.scratch, value) {
		return 0, errNoRoom
	}
	return m.callFunction(ctx, "qjs_call", uint64(function), uint64(undefined), 1, uint64(m.image.scratch))
}

// property reads one of an object's own or inherited properties.
func (m *machine) property(ctx context.Context, object uint32, name string) (value uint32, err error) {
	at, err := m.writeText(ctx, name)
	if err != nil {
		return 0, err
	}
	if value, err = m.callFunction(ctx, "qjs_get_prop_string", uint64(object), uint64(at)); err != nil {
		return 0, err
	}
	_, err = m.callFunction(ctx, "wasm_free", uint64(at))
	return value, err
}

// closeMachine gives the machine's memory back.
func (m *machine) closeMachine(ctx context.Context) {
	_ = m.module.Close(context.WithoutCancel(ctx)) // there is nothing of it that could be written
	m.memory.Free()
}
