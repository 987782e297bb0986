package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// answerAsked does what the prelude asks of the host, and gives the address of the answer's
// value. Errors leave by a panic with errStopped, which the machine's own runtime makes an
// error of the call that began it all.
func (m *machine) answerAsked(argc, argv uint32) uint64 {
	if m == nil || m.ctx == nil {
		panic(errStopped) // nothing is asked while the image is made
	}
	ctx := context.WithoutCancel(m.ctx) // it is short, and m.ctx ends what called it
	value, err := m.answerHostCall(ctx, argc, argv)
	if errors.Is(err, errNoRoom) {
		m.stopCall(engine.FailMemory, "there is no memory left for what the host answers")
	}
	if err != nil {
		panic(errStopped)
	}
	return uint64(value)
}

// stopCall notes why the host ends the call; the first reason counts.
func (m *machine) stopCall(kind engine.FailureKind, message string) {
	if m.stopped == nil {
		m.stopped = &engine.CallFailure{Kind: kind, Message: message}
	}
}

func (m *machine) answerHostCall(ctx context.Context, argc, argv uint32) (value uint32, err error) {
	addresses, ok := addressesAt(m.module.Memory(), argc, argv)
	if !ok || len(addresses) == 0 {
		return m.newString(ctx, refusal("the host is asked with a word and at most three texts"))
	}
	verb, _, err := m.readText(ctx, addresses[0], maxVerb)
	if err != nil {
		return 0, err
	}
	switch {
	case (verb == "out" || verb == "err") && len(addresses) == 2:
		return m.takeWritten(ctx, verb, addresses[1])
	case verb == "tool" && len(addresses) == 3:
		return m.callTool(ctx, addresses[1], addresses[2])
	}
	return m.newString(ctx, refusal("the host knows no such word"))
}

// takeWritten takes what code writes, as long as it may.
func (m *machine) takeWritten(ctx context.Context, verb string, address uint32) (value uint32, err error) {
	left := int(m.call.Limits.OutputBytes) - m.out.Len() - m.err.Len()
	text, size, err := m.beginning(ctx, address, left)
	if err != nil {
		return 0, err
	}
	if size != uint64(len(text)) {
		m.truncated = true
	}
	to := &m.out
	if verb == "err" {
		to = &m.err
	}
	to.WriteString(text)
	return m.callFunction(ctx, "qjs_get_undefined")
}

// callTool has a function of the host called. The time that it takes is not the code's.
func (m *machine) callTool(ctx context.Context, named, with uint32) (value uint32, err error) {
	name, ok, err := m.readText(ctx, named, maxAsk)
	if err != nil {
		return 0, err
	}
	arguments, also, err := m.readText(ctx, with, maxAsk)
	switch {
	case err != nil:
		return 0, err
	case !ok || !also || len(name)+len(arguments) > maxAsk:
		return m.newString(ctx, refusal("the name and the arguments of a tool are texts, and have at most 128 KiB together"))
	case m.call.Tool == nil:
		return m.newString(ctx, refusal("there are no tools here"))
	}
	resume := m.ran.pauseTime()
	reply := m.call.Tool(m.ctx, name, arguments)
	resume()
	if m.ctx.Err() != nil {
		return 0, errStopped
	}
	return m.newString(ctx, replied(reply))
}

// answered is what the prelude gets.
type answered struct {
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *string         `json:"error,omitempty"`
	Approval string          `json:"approval,omitempty"`
}

func replied(r engine.ToolReply) string {
	a := answered{Result: json.RawMessage(r.Result), Approval: r.Approval}
	if r.Refusal != "" || r.Result == "" {
		a.Result, a.Error = nil, &r.Refusal
	}
	text, err := json.Marshal(a)
	if err != nil { // the result is no JSON
		return refusal("the tool's answer can't be passed on")
	}
	return string(text)
}

func refusal(sentence string) string {
	sentence = strings.ToValidUTF8(sentence, "\uFFFD")
	text, _ := json.Marshal(answered{Error: &sentence}) //nolint:errchkjson // of a text it does not fail
	return string(text)
}
