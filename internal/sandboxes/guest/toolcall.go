package guest

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // the stubs
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// ToolName is the name under which the agent's program calls tools of the host.
const ToolName = "cofferdam-tool"

// The stubs by which programs call tools.
var (
	//go:embed toolclient/tool_client.py
	pythonStub string
	//go:embed toolclient/tool_client.mjs
	javascriptStub string
)

const toolHelp = `cofferdam-tool calls functions of the host that the policy allows:

  cofferdam-tool                       list them, with what they take
  cofferdam-tool NAME ['{"a": 1}']     call one; - instead of the arguments reads them from stdin
  cofferdam-tool --python              print a module with call_tool(NAME, {...})
  cofferdam-tool --javascript          print a module with callTool(NAME, {...})

It ends with 0, with 1 if there is no result, 2 for a command line that is none, and 3 if
a person has to approve the call first.
`

// Bounds of a call.
const (
	toolDial   = 30 * time.Second
	maxToolAsk = 64 << 10 // bytes of arguments that are read from stdin; more is refused anyway
	maxAnswer  = 64 << 20
)

// ToolConfig is where the tools are, and what the command line reads and writes.
type ToolConfig struct {
	Dial           func(ctx context.Context) (net.Conn, error) // nil: to the tools' name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// exitHeld is the code of a call that a person has to approve first.
const exitHeld = 3

// errHeld is why such a call has no result.
type errHeld struct{ sentence string }

// Error implements error.
func (e *errHeld) Error() string { return e.sentence }

// Tool is the command line cofferdam-tool. It returns the exit code: 0, 1 when there is no
// result, 2 for usage, 3 when a person has to approve the call first.
func Tool(ctx context.Context, args []string, c ToolConfig) int {
	if c.Dial == nil {
		c.Dial = dialTools
	}
	switch {
	case len(args) == 1 && args[0] == "--python":
		_, _ = io.WriteString(c.Stdout, pythonStub)
		return 0
	case len(args) == 1 && args[0] == "--javascript":
		_, _ = io.WriteString(c.Stdout, javascriptStub)
		return 0
	case len(args) == 1 && (args[0] == "--help" || args[0] == "-h"):
		_, _ = io.WriteString(c.Stdout, toolHelp)
		return 0
	case len(args) > 2, len(args) > 0 && strings.HasPrefix(args[0], "-"):
		_, _ = io.WriteString(c.Stderr, toolHelp)
		return 2
	case len(args) == 0:
		return c.tellFailure(c.listTools(ctx))
	}
	return c.tellFailure(c.callTool(ctx, args))
}

// tellFailure says a failure.
func (c ToolConfig) tellFailure(err error) int {
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintf(c.Stderr, "cofferdam-tool: %v\n", err)
	if _, held := errors.AsType[*errHeld](err); held {
		return exitHeld
	}
	return 1
}

func dialTools(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, toolDial)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(channel.ToolsHost, "80"))
	if err != nil {
		return nil, fmt.Errorf("the host can't be asked: %w", err)
	}
	return conn, nil
}

// listTools prints a line for each tool, and what it takes.
func (c ToolConfig) listTools(ctx context.Context) error {
	answer, err := c.askHost(ctx, "GET", "/tools", nil)
	if err != nil {
		return err
	}
	if len(answer.Tools) == 0 {
		_, _ = io.WriteString(c.Stdout, "This sandbox may call no tool.\n")
	}
	for _, t := range answer.Tools {
		_, _ = fmt.Fprintf(c.Stdout, "%s\n  %s\n", oneLine(t.Name+"  "+t.Description), t.Arguments)
	}
	return nil
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// callTool calls a tool and prints its result: a text as it is, all else as JSON.
func (c ToolConfig) callTool(ctx context.Context, args []string) error {
	given := []byte("{}")
	if len(args) == 2 {
		given = []byte(args[1])
	}
	if len(args) == 2 && args[1] == "-" {
		var err error
		if given, err = io.ReadAll(io.LimitReader(c.Stdin, maxToolAsk+1)); err != nil {
			return fmt.Errorf("read the arguments: %w", err)
		}
	}
	if !json.Valid(given) {
		return errors.New("the arguments are not JSON; they are an object such as '{\"a\": 1}'")
	}
	name, err := json.Marshal(args[0])
	if err != nil {
		return err
	}
	body := bytes.Join([][]byte{[]byte(`{"tool":`), name, []byte(`,"args":`), given, []byte(`}`)}, nil)
	answer, err := c.askHost(ctx, "POST", "/call_tool", body)
	if err != nil {
		return err
	}
	var text string
	if json.Unmarshal(answer.Result, &text) == nil {
		_, err = io.WriteString(c.Stdout, text)
		return err
	}
	_, err = fmt.Fprintf(c.Stdout, "%s\n", answer.Result)
	return err
}

// toolAnswer is what the host says: one of its members.
type toolAnswer struct {
	Result json.RawMessage `json:"result"`
	Error  string          `json:"error"`
	// Approval is the request that the call waits as.
	Approval string `json:"approval"`
	Tools    []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Arguments   json.RawMessage `json:"arguments"`
	} `json:"tools"`
}

// askHost makes one request. It is HTTP 1.0, so that an answer is whole or has no end.
func (c ToolConfig) askHost(ctx context.Context, method, path string, body []byte) (answer toolAnswer, err error) {
	conn, err := c.Dial(ctx)
	if err != nil {
		return answer, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	head := fmt.Sprintf("%s %s HTTP/1.0\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", method, path, channel.ToolsHost, len(body))
	_, sendErr := conn.Write(append([]byte(head), body...)) // a refusal may come before all is sent
	text, err := readAnswer(conn)
	if err != nil {
		return answer, errors.Join(errors.New("the host did not answer; `cofferdam why` may say more"), sendErr, err)
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return answer, errors.New("the host answered what can't be read")
	}
	switch {
	case answer.Error != "" && answer.Approval != "":
		return answer, &errHeld{sentence: answer.Error}
	case answer.Error != "":
		return answer, errors.New(answer.Error)
	}
	return answer, nil
}

func readAnswer(conn io.Reader) ([]byte, error) {
	in := textproto.NewReader(bufio.NewReader(io.LimitReader(conn, maxAnswer)))
	if _, err := in.ReadLine(); err != nil { // the status; the body says it in words
		return nil, err
	}
	head, err := in.ReadMIMEHeader()
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(head.Get("Content-Length"))
	if err != nil || n < 0 || n > maxAnswer {
		return nil, errors.New("an answer without a length")
	}
	text, err := io.ReadAll(io.LimitReader(in.R, int64(n)))
	if err == nil && len(text) < n {
		err = io.ErrUnexpectedEOF
	}
	return text, err
}
