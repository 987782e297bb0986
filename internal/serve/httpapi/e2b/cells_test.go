package e2b

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/interpreter"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// kernels are real ones, as processes of this machine. A cell with the word forbidden is refused.
type kernels struct{ *dataStage }

func (k kernels) StartKernel(_ context.Context, want commands.Kernel) (string, error) {
	started, err := k.box.Commands.Start(sandbox.Command{Argv: want.Argv, Env: want.Env, Dir: want.Dir, Stdin: true})
	return started.ID, err
}

func (k kernels) Attach(_ context.Context, kernel string, offset int64) (net.Conn, error) {
	return k.box.Commands.Attach(kernel, offset)
}

func (k kernels) Signal(ctx context.Context, kernel, name string) error {
	return k.box.Commands.Send(ctx, kernel, channel.FrameSignal, []byte(`{"name":"`+name+`"}`))
}
func (kernels) Kernels(context.Context) ([]keeper.Command, error)      { return nil, nil }
func (kernels) Environment(context.Context) (map[string]string, error) { return nil, nil }
func (kernels) Limited(c context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(c)
}

func (kernels) Cell(_ context.Context, c commands.Cell) (string, func(channel.Exit), error) {
	if strings.Contains(c.Code, "forbidden") {
		return "", nil, fault.New(fault.ErrForbidden, "rule no-x denies it: not here (rule rules.no-x, request r1)")
	}
	return "cell-1", func(channel.Exit) {}, nil
}

// newCellStage is a data plane with kernels.
func newCellStage(t *testing.T) *dataStage {
	t.Helper()
	s := newDataStage(t)
	s.data.cfg.Interpreter = interpreter.New(interpreter.Config{Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Host: func(string) (interpreter.Host, error) {
		return kernels{s}, nil
	}})
	return s
}

// cellRequest is one to the interpreter, as the SDKs make it: token "" is none.
func (s *dataStage) cellRequest(route, body, access, traffic string) *http.Request {
	s.t.Helper()
	method, path, _ := strings.Cut(route, " ")
	r := s.request(method, path, strings.NewReader(body))
	r.Header.Set(headerPort, "49999")
	r.Header.Del(headerAccess)
	if access != "" {
		r.Header.Set(headerAccess, access)
	}
	if traffic != "" {
		r.Header.Set(headerTraffic, traffic)
	}
	return r
}

// cell runs one and returns its lines.
func (s *dataStage) cell(body string) []map[string]any {
	s.t.Helper()
	status, text := s.do(s.cellRequest("POST /execute", body, "token-"+boxID, ""))
	if status != http.StatusOK {
		s.t.Fatalf("%s: %d %s", body, status, text)
	}
	var lines []map[string]any
	for in := bufio.NewScanner(strings.NewReader(text)); in.Scan(); {
		var line map[string]any
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			s.t.Fatalf("%q: %v", in.Text(), err)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestCells(t *testing.T) {
	t.Parallel()
	s := newCellStage(t)
	lines := s.cell(`{"code":"echo hi; X=1; false","language":"bash","context_id":null,"env_vars":null}`)
	if len(lines) != 4 || lines[0]["type"] != "stdout" || lines[0]["text"] != "hi\n" || lines[0]["timestamp"] == nil || lines[1]["type"] != "error" || lines[1]["name"] != "ExitCode" ||
		lines[2]["execution_count"] != 1.0 || lines[3]["type"] != "end_of_execution" {
		t.Errorf("%v", lines)
	}
	if lines := s.cell(`{"code":"echo $X $FOO","language":"sh","env_vars":{"FOO":"bar"}}`); lines[0]["text"] != "1 bar\n" {
		t.Errorf("%v", lines)
	}
	lines = s.cell(`{"code":"echo forbidden","language":"bash"}`)
	if len(lines) != 2 || lines[0]["name"] != "PolicyRefusal" || !strings.Contains(lines[0]["value"].(string), "rules.no-x") || lines[1]["type"] != "end_of_execution" {
		t.Errorf("%v", lines)
	}
	for body, want := range map[string]struct {
		status int
		says   string
	}{
		`{"code":"1","language":"cobol"}`:                            {400, "there are python, javascript, typescript, bash"},
		`{"code":"1","context_id":"ctx-none"}`:                       {404, "no context"},
		`{"language":"bash"}`:                                        {400, "no code"},
		`{"code":"1","more":1}`:                                      {400, "unknown field"},
		`{"code":1}`:                                                 {400, "code"},
		`{"code":"1"`:                                                {400, "JSON"},
		`{"code":"` + strings.Repeat("x", 1<<20+1) + `"}`:            {400, "at most 1048576"},
		`{"code":"` + strings.Repeat("x", maxCell) + `"}`:            {400, "larger than"},
		`{"code":"1","env_vars":{"A=B":"x"}}`:                        {400, "environment variable"},
		`{"code":"1","language":"bash","context_id":"default-bash"}`: {400, "not both"},
	} {
		if status, text := s.do(s.cellRequest("POST /execute", body, "token-"+boxID, "")); status != want.status || !strings.Contains(text, want.says) {
			t.Errorf("%.60s: %d %.200s, want %d %q", body, status, text, want.status, want.says)
		}
	}
}

// TestACellsTimeBegins: the answer to a cell begins with the cell, though that says nothing:
// clients count its time from there on.
func TestACellsTimeBegins(t *testing.T) {
	t.Parallel()
	s := newCellStage(t)
	goOn := filepath.Join(t.TempDir(), "go-on")
	r := s.cellRequest("POST /execute", `{"code":"while [ ! -e `+goOn+` ]; do sleep 0.02; done","language":"bash"}`, "token-"+boxID, "")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	answer, err := s.server.Client().Do(r.WithContext(ctx))
	if err != nil {
		t.Fatalf("there is no answer while the cell runs: %v", err)
	}
	defer answer.Body.Close()
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(text), "end_of_execution") {
		t.Errorf("the answer ends with %v: %q", err, text)
	}
}

// TestASandboxEndsBeforeACellsAnswer: a cell whose sandbox ends under it is broken off, though its answer has not
// begun, since it waits for its kernel.
func TestASandboxEndsBeforeACellsAnswer(t *testing.T) {
	t.Parallel()
	s := newCellStage(t)
	begun := make(chan struct{}, 1)
	s.data.cfg.Interpreter = interpreter.New(interpreter.Config{Log: slog.New(slog.DiscardHandler), Host: func(string) (interpreter.Host, error) {
		begun <- struct{}{}
		<-s.box.Gone()
		return nil, fault.New(fault.ErrNotFound, "there is no such sandbox any more")
	}})
	go func() {
		<-begun
		s.box.Become(sandbox.Destroyed)
	}()
	answer, err := s.server.Client().Do(s.cellRequest("POST /execute", `{"code":"true","language":"bash"}`, "token-"+boxID, ""))
	if err == nil {
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		t.Errorf("it is answered: %d %s", answer.StatusCode, text)
	}
	owner := roomOf(s.box.Sandbox) // has all that the request held
	within, leave := s.data.cfg.Room.Enter(t.Context(), owner)
	defer leave()
	if err := backend.Take(within, backend.RoomEach); err != nil {
		t.Error(err)
	}
	for range backend.UnderwayEach {
		if _, err := s.data.cfg.Underway.Join(owner, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestContextsOfTheWire(t *testing.T) {
	t.Parallel()
	s := newCellStage(t)
	ask := func(want int, route, body string) string {
		t.Helper()
		status, text := s.do(s.cellRequest(route, body, "", "contexts-"+boxID))
		if status != want {
			t.Errorf("%s %s: %d %s, want %d", route, body, status, text, want)
		}
		return text
	}
	var made contextInfo
	if err := json.Unmarshal([]byte(ask(200, "POST /contexts", `{"language":"bash","cwd":"/home"}`)), &made); err != nil || made.Language != "bash" || made.Cwd != "/home" {
		t.Fatalf("%+v, %v", made, err)
	}
	if list := ask(200, "GET /contexts", ""); !strings.Contains(list, made.ID) || !strings.Contains(list, `"language":"javascript"`) {
		t.Error(list)
	}
	s.cell(`{"code":"X=1","context_id":"` + made.ID + `"}`)
	ask(204, "POST /contexts/"+made.ID+"/restart", "")
	if lines := s.cell(`{"code":"echo ${X:-gone}","context_id":"` + made.ID + `"}`); lines[0]["text"] != "gone\n" {
		t.Errorf("after a restart: %v", lines)
	}
	ask(204, "DELETE /contexts/"+made.ID, "")
	ask(404, "DELETE /contexts/"+made.ID, "")
	ask(404, "POST /contexts/"+made.ID+"/restart", "")
	ask(400, "POST /contexts", `{"language":"cobol"}`)
	ask(501, "GET /kernels", "")
}

// TestWhoMayRunCells: the sandbox's token is for all, the one that the SDKs send about
// contexts for these alone.
func TestWhoMayRunCells(t *testing.T) {
	t.Parallel()
	s := newCellStage(t)
	const token, contexts = "token-" + boxID, "contexts-" + boxID
	for name, test := range map[string]struct {
		route, access, traffic string
		want                   int
	}{
		"health":                            {"GET /health", "", "", 200},
		"a cell":                            {"POST /execute", token, "", 400},
		"a cell without a token":            {"POST /execute", "", "", 401},
		"a cell with the contexts'":         {"POST /execute", "", contexts, 401},
		"a cell with another's":             {"POST /execute", "token-other", contexts, 401},
		"contexts":                          {"GET /contexts", token, "", 200},
		"contexts with theirs":              {"GET /contexts", "", contexts, 200},
		"contexts without a token":          {"GET /contexts", "", "", 401},
		"contexts with another's":           {"GET /contexts", "", "contexts-other", 401},
		"contexts with a wrong and a right": {"GET /contexts", "token-other", contexts, 401},
		"a removal without a token":         {"DELETE /contexts/default-python", "", "", 401},
	} {
		if status, body := s.do(s.cellRequest(test.route, "", test.access, test.traffic)); status != test.want {
			t.Errorf("%s: %d %s, want %d", name, status, body, test.want)
		}
	}
}
