package egress_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
)

// toolDoor answers calls of tools by the tool's name.
type toolDoor struct {
	fakeDoor
	calls []door.ToolAsk
	heard chan struct{} // closed when "slow" is called
	slow  chan struct{} // "slow" is answered when it is closed
	gone  int           // calls that were given up
}

func (d *toolDoor) Tools(context.Context, string) ([]door.Tool, error) {
	return []door.Tool{{Name: "order", Description: "looks up", Arguments: `{"type":"object"}`}}, nil
}

func (d *toolDoor) CallTool(ctx context.Context, ask door.ToolAsk) (door.ToolAnswer, error) {
	d.mu.Lock()
	d.calls = append(d.calls, ask)
	d.change()
	d.mu.Unlock()
	refused := func(o door.ToolOutcome) (door.ToolAnswer, error) {
		return door.ToolAnswer{Outcome: o, Reason: "because", RequestID: "r-1", Approval: "ap-1"}, nil
	}
	switch ask.Tool {
	case "order":
		return door.ToolAnswer{Outcome: door.ToolAnswered, Result: jsontext.Value(`{"a":"<\u2028>"}`)}, nil
	case "slow", "hang":
		var wait chan struct{}
		if ask.Tool == "slow" {
			close(d.heard)
			wait = d.slow
		}
		select {
		case <-wait:
			return door.ToolAnswer{Outcome: door.ToolAnswered, Result: jsontext.Value(`"late"`)}, nil
		case <-ctx.Done():
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.gone++
		d.change()
		return door.ToolAnswer{}, ctx.Err()
	case "lost":
		return door.ToolAnswer{}, fault.New(fault.ErrUnavailable, "the log is not to be had")
	default:
		return refused(door.ToolOutcome(ask.Tool))
	}
}

// said sends requests on one connection to the tools, and gives the answers, each "status body".
func said(t *testing.T, conn net.Conn, requests ...string) []string {
	t.Helper()
	in := bufio.NewReader(to(t, conn, channel.ToolsHost, 80))
	var answers []string
	for _, request := range requests {
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.Body.Close() != nil {
			t.Fatal(err)
		}
		answers = append(answers, fmt.Sprint(answer.StatusCode, " ", strings.TrimSpace(string(body))))
	}
	return answers
}

func posted(body string) string {
	return fmt.Sprintf("POST /call_tool HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", channel.ToolsHost, len(body), body)
}

func TestToolsAreCalled(t *testing.T) {
	d := &toolDoor{}
	dial := uplinkTo(t, &d.fakeDoor, egress.Limits{}, nil, d)
	if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenDNS, Name: channel.ToolsHost}); !r.OK || !r.DNS.Exists || !slices.Equal(r.DNS.Ports, []int{80}) {
		t.Errorf("DNS: %+v", r)
	}
	if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenTCP, Name: channel.ToolsHost, Port: 443}); r.OK {
		t.Errorf("another port: %+v", r)
	}
	why := `{"error":"because; request r-1; see: cofferdam why"}`
	form := `400 {"error":"a call is JSON: {\"tool\": \"NAME\", \"args\": {...}}, with no member twice and no other"}`
	for request, want := range map[string]string{
		"GET /tools HTTP/1.1\r\nHost: x\r\n\r\n":                     `200 {"tools":[{"name":"order","description":"looks up","arguments":{"type":"object"}}]}`,
		"GET /call_tool HTTP/1.1\r\nHost: x\r\n\r\n":                 `405 {"error":"tools are listed with GET /tools and called with POST /call_tool"}`,
		"GET /etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n":                `404 {"error":"there is nothing here but /tools and /call_tool"}`,
		posted(`{"tool": "order", "args": {"b": 1, "a": "\u0041"}}`): "200 {\"result\":{\"a\":\"<\u2028>\"}}",
		posted(`{"tool": "order"}`):                                  "200 {\"result\":{\"a\":\"<\u2028>\"}}",
		posted(`{"tool": "refused"}`):                                "403 " + why,
		posted(`{"tool": "held"}`):                                   `403 {"approval":"ap-1","error":"because; request ap-1; a person approves it on the host: cofferdam approvals approve ap-1; call it again then"}`,
		posted(`{"tool": "unknown"}`):                                "404 " + why,
		posted(`{"tool": "invalid"}`):                                "422 " + why,
		posted(`{"tool": "busy"}`):                                   "429 " + why,
		posted(`{"tool": "failed"}`):                                 "200 " + why,
		posted(`{"tool": "of another kind"}`):                        "403 " + why,
		posted(`{"tool": "lost"}`):                                   `503 {"error":"the log is not to be had"}`,
		posted(``):                                                   form,
		posted(`{}`):                                                 form,
		posted(`{"tool": ""}`):                                       form,
		posted(`{"tool": "a", "tool": "b"}`):                         form,
		posted(`{"tool": "a", "sandbox": "sb-2"}`):                   form,
		posted(`{"tool": "a"} {"tool": "b"}`):                        form,
		posted(`{"tool": "a", "args": "` + "\xff" + `"}`):            form,
		posted(strings.Repeat(" ", 80<<10)):                          `413 {"error":"a call has at most 73728 bytes"}`,
	} {
		if got := said(t, dial(), request); got[0] != want {
			t.Errorf("%.80q: %s", request, got[0])
		}
	}
	one := posted(`{"tool": "order", "args": {"n": 1.0}}`)
	if got := said(t, dial(), one, one); len(got) != 2 || got[0] != got[1] {
		t.Errorf("on one connection: %q", got)
	}
	if last := d.calls[len(d.calls)-1]; last != (door.ToolAsk{Sandbox: "sb-1", Tool: "order", Arguments: `{"n": 1.0}`}) {
		t.Errorf("%+v", last)
	}
}

// TestACallTakesItsTime: more than a request may take to be read; and one that nobody waits
// for any more is given up.
func TestACallTakesItsTime(t *testing.T) {
	for limit := 50 * time.Millisecond; !takesItsTime(t, limit); limit *= 4 {
		if limit > time.Minute {
			t.Fatal("a call that takes longer than the reading of another is not answered")
		}
	}
	d := &toolDoor{}
	dial := uplinkTo(t, &d.fakeDoor, egress.Limits{}, nil, d)
	conn := to(t, dial(), channel.ToolsHost, 80)
	if _, err := io.WriteString(conn, posted(`{"tool": "hang"}`)); err != nil {
		t.Fatal(err)
	}
	d.until(t, "the call", func() bool { return len(d.calls) == 1 })
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	d.until(t, "its end", func() bool { return d.gone == 1 })
}

// takesItsTime tells whether a call is answered that takes longer than a request may take to
// be read. It is not if this machine is too busy to read one within the limit.
func takesItsTime(t *testing.T, limit time.Duration) bool {
	t.Helper()
	d := &toolDoor{heard: make(chan struct{}), slow: make(chan struct{})}
	dial := uplinkTo(t, &d.fakeDoor, egress.Limits{HelloTime: limit}, nil, d)
	asks := func(request string) <-chan string {
		conn, answer := to(t, dial(), channel.ToolsHost, 80), make(chan string, 1)
		_, _ = io.WriteString(conn, request) // what is cut off has no answer
		go func() {
			all, _ := io.ReadAll(conn)
			answer <- string(all)
		}()
		return answer
	}
	const begin = "POST /call_tool HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: "
	late := asks(begin + "16\r\n\r\n" + `{"tool": "slow"}`)
	select {
	case <-d.heard:
	case <-late:
		return false
	}
	// It has begun: when a later one has had its time, so has it.
	if half := <-asks(begin + "100\r\n\r\n{"); !strings.Contains(half, "the call broke off") {
		return false
	}
	if len(d.calls) != 2 || d.calls[1].Malformed != "the call broke off" {
		t.Errorf("%+v", d.calls)
	}
	close(d.slow)
	return strings.HasSuffix(strings.TrimSpace(<-late), `{"result":"late"}`)
}

// TestWhatIsNoCallIsOnRecord: however it is bad, the door hears of it, and of nothing in it.
func TestWhatIsNoCallIsOnRecord(t *testing.T) {
	d := &toolDoor{}
	dial := uplinkTo(t, &d.fakeDoor, egress.Limits{}, nil, d)
	for what, body := range map[string]string{
		"a depth bomb":   `{"tool": "order", "args": ` + strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000) + `}`,
		"a member twice": `{"tool": "order", "args": {"secret-name": 1, "secret-name": 2}}`,
		"a NUL":          "{\"tool\": \"order\", \"args\": {\"a\": \"\x00\"}}",
		"too long":       strings.Repeat(" ", 80<<10),
		"nothing":        "",
	} {
		before := len(d.calls)
		got := said(t, dial(), posted(body))
		if !strings.HasPrefix(got[0], "400 ") && !strings.HasPrefix(got[0], "413 ") {
			t.Errorf("%s: %s", what, got[0])
		}
		if len(d.calls) != before+1 {
			t.Fatalf("%s: the door heard %d times", what, len(d.calls)-before)
		}
		if ask := d.calls[before]; ask.Malformed == "" || ask.Sandbox != "sb-1" || ask.Tool+ask.Arguments != "" || strings.Contains(ask.Malformed, "secret") {
			t.Errorf("%s: %+v", what, ask)
		}
	}
	for _, fine := range []string{`{"tool": "order", "args": {"n": 1e999999, "nul": "\u0000", "deep": [[[[[[]]]]]]}}`, `{"tool": "order", "args": []}`} { // for the door to judge
		said(t, dial(), posted(fine))
		if ask := d.calls[len(d.calls)-1]; ask.Malformed != "" || ask.Tool != "order" {
			t.Errorf("%s: %+v", fine, ask)
		}
	}
}

// TestTheToolkitsClient: the agent-sandbox toolkit's design has a stub inside that posts with
// Python's urllib. These are the bytes that it sends, and what it reads of the answers: the
// object of a 200, and of any other status the member error.
func TestTheToolkitsClient(t *testing.T) {
	d := &toolDoor{}
	dial := uplinkTo(t, &d.fakeDoor, egress.Limits{}, nil, d)
	sends := func(body string) string {
		return fmt.Sprintf("POST /call_tool HTTP/1.1\r\nAccept-Encoding: identity\r\nContent-Length: %d\r\nHost: tools.cofferdam.internal\r\n"+
			"User-Agent: Python-urllib/3.11\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n%s", len(body), body)
	}
	for body, want := range map[string]string{
		`{"tool": "order", "args": {"query": "quantum computing"}}`: "HTTP/1.1 200 OK\r\n{\"result\":{\"a\":\"<\u2028>\"}}\n",
		`{"tool": "failed", "args": {}}`:                            "HTTP/1.1 200 OK\r\n{\"error\":\"because; request r-1; see: cofferdam why\"}\n",
		`{"tool": "refused", "args": {"path": "/etc/passwd"}}`:      "HTTP/1.1 403 Forbidden\r\n{\"error\":\"because; request r-1; see: cofferdam why\"}\n",
		`{"tool": "unknown", "args": {}}`:                           "HTTP/1.1 404 Not Found\r\n{\"error\":\"because; request r-1; see: cofferdam why\"}\n",
	} {
		conn := to(t, dial(), channel.ToolsHost, 80)
		if _, err := io.WriteString(conn, sends(body)); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn) // it asked for the connection to be closed
		if err != nil {
			t.Fatal(err)
		}
		head, said, _ := strings.Cut(string(answer), "\r\n\r\n")
		status, fields, _ := strings.Cut(head, "\r\n")
		if status+"\r\n"+said != want {
			t.Errorf("%s: %q", body, answer)
		}
		for _, field := range []string{"Content-Type: application/json", fmt.Sprint("Content-Length: ", len(said)), "Connection: close"} {
			if !strings.Contains(fields+"\r\n", field+"\r\n") {
				t.Errorf("%s: %q is not among %q", body, field, fields)
			}
		}
	}
	if len(d.calls) != 4 {
		t.Errorf("%+v", d.calls)
	}
}

// TestToolsQuotasAreOnRecord: what a quota keeps from the tools is on record as what it keeps from
// a host is, also if its client has gone.
func TestToolsQuotasAreOnRecord(t *testing.T) {
	for _, c := range []struct {
		limits egress.Limits
		want   string
	}{
		{egress.Limits{Connections: 1}, door.RuleHostQuota + " " + channel.ToolsHost + ":80 the run has as many connections open as it may"},
		{egress.Limits{Memory: 300 << 10}, door.RuleHostMemory + " " + channel.ToolsHost + ":80 "},
	} {
		d := &toolDoor{}
		dial := uplinkTo(t, &d.fakeDoor, c.limits, nil, d)
		to(t, dial(), channel.ToolsHost, 80) // the control: it is answered
		if n := d.rejections(); n != 0 {
			t.Errorf("the first leaves %d refusals", n)
		}
		r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenTCP, Name: channel.ToolsHost, Port: 80})
		if r.OK || !strings.HasSuffix(r.Error, "; request n-3; see: cofferdam why") {
			t.Errorf("one too many: %+v", r)
		}
		d.mu.Lock()
		if len(d.rejected) != 1 || !strings.HasPrefix(d.rejected[0], c.want) {
			t.Errorf("on record are %q, want %q", d.rejected, c.want)
		}
		d.mu.Unlock()
	}
}
