package wasm

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

const (
	// asynchronous has code evaluated so that it can await, which gives a promise.
	asynchronous = 1 << 7
	// headroom is what of a call's memory the language may not take, so that it says so
	// itself when its part is full.
	headroom = 512 << 10
)

// States of a promise.
const (
	promisePending  = 0
	promiseRejected = 2
)

// evaluate has a text evaluated, and gives the value, which may be the mark of an
// exception.
func (m *machine) evaluate(ctx context.Context, code, name string, flags uint64) (value uint32, err error) {
	at, err := m.writeText(ctx, code)
	if err != nil {
		return 0, err
	}
	named, err := m.writeText(ctx, name)
	if err != nil {
		return 0, err
	}
	if value, err = m.callFunction(ctx, "qjs_eval", uint64(at), uint64(len(code)), uint64(named), flags); err != nil {
		return 0, err
	}
	_, err = m.callFunction(ctx, "wasm_free", uint64(at))
	return value, err
}

// runCall runs the machine's one call. Limits are set, none is zero.
func (m *machine) runCall(ctx context.Context, call engine.Call) (engine.CallResult, error) {
	begun := time.Now()
	living, end := context.WithTimeout(ctx, call.Limits.Life)
	defer end()
	m.call, m.ctx = call, context.WithValue(living, machineKey{}, m)
	m.memory.setBound(uint64(call.Limits.MemoryBytes))
	m.ran.startLimit(call.Limits.Time, end)
	defer m.ran.stopCounting()
	value, failure, err := m.evaluateCode(m.ctx)
	if err != nil {
		if ctx.Err() != nil {
			return engine.CallResult{}, ctx.Err()
		}
		failure = m.broken(err)
	}
	result := engine.CallResult{
		Value: value, Stdout: strings.ToValidUTF8(m.out.String(), "\uFFFD"), Stderr: strings.ToValidUTF8(m.err.String(), "\uFFFD"),
		Truncated: m.truncated, Failure: failure, MemoryBytes: m.memory.usedMost(), Took: time.Since(begun),
	}
	if failure != nil {
		result.Value = ""
	}
	return result, nil
}

// broken is why the module stopped.
func (m *machine) broken(err error) *engine.CallFailure {
	switch {
	case m.ran.isOver():
		return m.lateFailure()
	case m.ctx.Err() != nil:
		return &engine.CallFailure{Kind: engine.FailTime, Message: "it took more than the " + m.call.Limits.Life.String() + " that it may take with all that it waits for"}
	case m.stopped != nil:
		return m.stopped
	case errors.Is(err, errNoRoom):
		return &engine.CallFailure{Kind: engine.FailMemory, Message: "its memory is full"}
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return &engine.CallFailure{Kind: engine.FailCrash, Message: "the module that ran it stopped: " + printableText(first)}
}

func (m *machine) lateFailure() *engine.CallFailure {
	return &engine.CallFailure{Kind: engine.FailTime, Message: "it computed for more than the " + m.call.Limits.Time.String() + " that it may"}
}

// evaluateCode has the code evaluated, with all that it leaves to be done later, and gives what
// came of it. An error: the module is broken.
func (m *machine) evaluateCode(ctx context.Context) (value string, failure *engine.CallFailure, err error) {
	if err := m.makeReady(ctx); err != nil {
		return "", nil, err
	}
	promise, err := m.evaluate(ctx, m.call.Code, "call.js", asynchronous)
	if err != nil {
		return "", nil, err
	}
	if failed, err := m.askModule(ctx, "qjs_is_exception", uint64(promise)); failed || err != nil {
		failure, err = m.thrown(ctx, engine.FailSyntax, err)
		return "", failure, err
	}
	if failure, err := m.drainJobs(ctx); failure != nil || err != nil {
		return "", failure, err
	}
	state, err := m.callFunction(ctx, "qjs_promise_state", uint64(promise))
	if err != nil {
		return "", nil, err
	}
	if state == promisePending {
		return "", &engine.CallFailure{Kind: engine.FailPending, Message: "it waits for something that never comes: there are no timers, and nothing is left to be done"}, nil
	}
	result, err := m.callFunction(ctx, "qjs_promise_result", uint64(promise))
	if err != nil {
		return "", nil, err
	}
	if state == promiseRejected {
		failure, err = m.explainThrown(ctx, engine.FailThrown, result)
		return "", failure, err
	}
	return m.encode(ctx, result)
}

// makeReady gives the machine its limits and its seed.
func (m *machine) makeReady(ctx context.Context) error {
	if _, err := m.callFunction(ctx, "qjs_set_memory_limit", uint64(m.call.Limits.MemoryBytes-headroom)); err != nil {
		return err
	}
	var random [16]byte
	rand.Read(random[:]) // never fails: it ends the process instead
	word := func(i int) int32 { return int32(binary.LittleEndian.Uint32(random[4*i:])) }
	seed, err := m.newString(ctx, fmt.Sprintf("[%d,%d,%d,%d]", word(0), word(1), word(2), word(3)))
	if err != nil {
		return err
	}
	_, err = m.applyFunction(ctx, m.image.seed, seed)
	return err
}

// drainJobs does what code has left to be done later.
func (m *machine) drainJobs(ctx context.Context) (*engine.CallFailure, error) {
	for {
		more, err := m.askModule(ctx, "qjs_is_job_pending")
		if err != nil {
			return nil, err
		}
		if m.ran.isOver() {
			return m.lateFailure(), nil
		}
		if !more {
			return nil, nil //nolint:nilnil // all is done
		}
		done, err := m.callFunction(ctx, "qjs_execute_pending_job")
		if err != nil {
			return nil, err
		}
		if int32(done) < 0 {
			return m.thrown(ctx, engine.FailThrown, nil)
		}
	}
}

// thrown is the exception that is under way.
func (m *machine) thrown(ctx context.Context, kind engine.FailureKind, err error) (*engine.CallFailure, error) {
	if err != nil {
		return nil, err
	}
	exception, err := m.callFunction(ctx, "qjs_get_exception")
	if err != nil {
		return nil, err
	}
	return m.explainThrown(ctx, kind, exception)
}

// encode is what the code came to, as JSON.
func (m *machine) encode(ctx context.Context, result uint32) (value string, failure *engine.CallFailure, err error) {
	inner, err := m.property(ctx, result, "value")
	if err != nil {
		return "", nil, err
	}
	text, err := m.applyFunction(ctx, m.image.encode, inner)
	if err != nil {
		return "", nil, err
	}
	if failed, err := m.askModule(ctx, "qjs_is_exception", uint64(text)); failed || err != nil {
		failure, err = m.thrown(ctx, engine.FailThrown, err)
		return "", failure, err
	}
	if is, err := m.askModule(ctx, "qjs_is_string", uint64(text)); !is || err != nil {
		return "", nil, err // undefined
	}
	value, ok, err := m.readText(ctx, text, int(m.call.Limits.OutputBytes))
	if err == nil && (!ok || !json.Valid([]byte(value))) {
		return "", &engine.CallFailure{Kind: engine.FailOutput, Message: fmt.Sprintf("what it came to has more than the %d bytes that it may have", m.call.Limits.OutputBytes)}, nil
	}
	return value, nil, err
}

// mostExplained bounds what the prelude says of what was thrown: three texts that it has cut,
// each letter of which may take six bytes of JSON.
const mostExplained = 3*6*maxSaid + 1<<10

// explained is what the prelude says of what was thrown.
type explained struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	Stack   string `json:"stack"`
}

// explainThrown explains what was thrown, as a failure. It may run the code's own functions, within
// its time.
func (m *machine) explainThrown(ctx context.Context, kind engine.FailureKind, exception uint32) (*engine.CallFailure, error) {
	if m.ran.isOver() {
		return m.lateFailure(), nil
	}
	more := uint64(m.call.Limits.MemoryBytes) + headroom // its memory may be full, and it has to say so
	m.memory.setBound(more)
	if _, err := m.callFunction(ctx, "qjs_set_memory_limit", more); err != nil {
		return nil, err
	}
	text, err := m.applyFunction(ctx, m.image.explain, exception)
	if err != nil {
		return nil, err
	}
	told, _, err := m.readText(ctx, text, mostExplained)
	if err != nil {
		return nil, err
	}
	if m.ran.isOver() {
		return m.lateFailure(), nil
	}
	var e explained
	if json.Unmarshal([]byte(told), &e) != nil {
		return &engine.CallFailure{Kind: engine.FailThrown, Message: "it threw what can't be told"}, nil //nolint:nilerr // It is the guest's fault, and told.
	}
	return &engine.CallFailure{Kind: failureKind(kind, e), Message: printableText(e.Message), Stack: printableText(e.Stack)}, nil
}

// failureKind goes by what the language itself throws.
func failureKind(kind engine.FailureKind, e explained) engine.FailureKind {
	switch {
	case e.Name == "InternalError" && strings.HasSuffix(e.Message, "out of memory"):
		return engine.FailMemory
	case e.Name == "RangeError" && strings.HasSuffix(e.Message, "call stack size exceeded"):
		return engine.FailStack
	case kind == engine.FailSyntax && e.Name != "SyntaxError":
		return engine.FailThrown
	}
	return kind
}
