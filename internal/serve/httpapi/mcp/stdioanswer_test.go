package mcp_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/mcp"
)

// TestDeepMessagesThatAskNothing: a client's answer that nests too deep reaches the question that it is for, as one that
// failed, and nobody answers a notification: the client would take the refusal for the answer to a question of its own that has
// the same id. The control are a question, which is refused, and an answer that is flat.
func TestDeepMessagesThatAskNothing(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	theirs, in := io.Pipe()
	out, ours := io.Pipe()
	conn, err := mcp.NewStdio(theirs, ours).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	said := make(chan error, 1)
	go func() {
		_, err := io.WriteString(in, strings.Join([]string{
			`{"jsonrpc":"2.0","id":1,"result":{"deep":` + deep + `}}`,
			`{"jsonrpc":"2.0","error":{"code":1,"message":"no","data":` + deep + `},"id":2}`,
			`{"jsonrpc":"2.0","id":3,"result":` + strings.Repeat("[", 9000),
			`{"jsonrpc":"2.0","method":"notifications/progress","params":` + deep + `}`,
			`{"jsonrpc":"2.0","id":null,"method":"notifications/progress","params":` + deep + `}`,
			`{"jsonrpc":"2.0","id":8,"method":"ping","params":` + deep + `,"id":9}`,
			`{"jsonrpc":"2.0","id":4,"result":{}}`,
		}, "\n")+"\n")
		said <- errors.Join(err, in.Close())
	}()
	told := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(out)
		told <- string(text)
	}()
	for id := int64(1); ; id++ {
		message, err := conn.Read(t.Context())
		if errors.Is(err, io.EOF) && id == 5 {
			break
		}
		answer, ok := message.(*jsonrpc.Response)
		if !ok || answer.ID.Raw() != id || (answer.Error == nil) != (id == 4) || id < 4 && !strings.Contains(answer.Error.Error(), "send it flatter") {
			t.Errorf("instead of the answer %d came %+v: %v", id, message, err)
			break
		}
	}
	if err := errors.Join(<-said, ours.Close()); err != nil {
		t.Error(err)
	}
	var refused struct{ ID any }
	if text := <-told; json.Unmarshal([]byte(text), &refused) != nil || refused.ID != 9.0 {
		t.Errorf("the client is told %q, not the refusal of 9 alone: of two ids the last counts, as for the library", text)
	}
}
