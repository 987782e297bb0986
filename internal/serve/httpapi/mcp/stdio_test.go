package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/mcp"
)

// TestDeepMessagesAreAnswered: a message that nests too deep is refused by its id, and the connection goes on: the next
// one is answered. The control is a message as deep as the library reads.
func TestDeepMessagesAreAnswered(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	theirs, in := io.Pipe()
	out, ours := io.Pipe()
	over := make(chan error, 1)
	go func() {
		err := newServer(newHouse(t), nil).Run(ctx, mcp.NewStdio(theirs, ours))
		over <- ours.CloseWithError(err) // nobody waits for an answer then
	}()
	t.Cleanup(func() {
		cancel()
		_ = in.Close() // the server may have closed its end
		<-over
	})
	answers := bufio.NewScanner(out)
	say := func(message string) string {
		if _, err := io.WriteString(in, message); err != nil {
			t.Fatal(err)
		}
		if !answers.Scan() {
			t.Fatalf("no answer to %.80s: %v", message, answers.Err())
		}
		return answers.Text()
	}
	say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n")
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	lists := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	call := func(id, deep string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"run_command","arguments":{"id":1,"text":"]]\"[","deep":%s}}}`, id, deep)
	}
	for name, c := range map[string]struct{ message, id string }{
		"lists":                   {call("7", lists(9000)) + "\n", "7"},
		"objects":                 {call(`"a"`, strings.Repeat(`{"id":`, 9000)+"1"+strings.Repeat("}", 9000)) + "\r\n", `"a"`},
		"far deeper":              {call("8", lists(200_000)) + "\n", "8"},
		"one too deep":            {call("9", lists(mostRead-2)) + "\n", "9"},
		"no end of the line":      {call("10", lists(9000)), "10"},
		"an id at its end":        {`{"jsonrpc":"2.0","method":"ping","params":` + lists(9000) + `,"id":11}` + "\n", "11"},
		"an id behind another":    {`{"params":{"id":1,"deep":` + lists(9000) + `},"jsonrpc":"2.0","method":"ping","id":12}` + "\n", "12"},
		"no end of the lists":     {`{"id":13,"jsonrpc":"2.0","method":"ping","params":` + strings.Repeat("[", 9000) + "\n", "13"},
		"an id that can't be one": {`{"id":true,"jsonrpc":"2.0","method":"ping","params":` + lists(9000) + "}\n", "null"},
		"no message":              {lists(9000) + "\n", "null"},
	} {
		var refused, next struct {
			ID    json.RawMessage
			Error *struct {
				Code    int
				Message string
			}
		}
		if err := json.Unmarshal([]byte(say(c.message)), &refused); err != nil || string(refused.ID) != c.id || refused.Error == nil || refused.Error.Code != -32600 || !strings.Contains(refused.Error.Message, "send it flatter") {
			t.Errorf("%s: %s %+v, %v", name, refused.ID, refused.Error, err)
		}
		if err := json.Unmarshal([]byte(say(`{"jsonrpc":"2.0","id":"next","method":"ping"}`+"\n")), &next); err != nil || string(next.ID) != `"next"` || next.Error != nil {
			t.Errorf("after %s: %s %+v, %v", name, next.ID, next.Error, err)
		}
	}
	if answer := say(call("14", lists(mostRead-3)) + "\n"); !strings.Contains(answer, `"id":14`) || strings.Contains(answer, "flatter") {
		t.Errorf("as deep as may be: %s", answer)
	}
}

// mostRead is how deep a message may nest. Three of it are around the arguments' deepest in these tests.
const mostRead = 1000
