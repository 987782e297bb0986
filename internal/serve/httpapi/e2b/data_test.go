package e2b

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

func TestWhoIsLetThrough(t *testing.T) {
	s := newDataStage(t)
	s.add("sb02")
	const list = processService + "List"
	for name, c := range map[string]struct {
		path, host string
		header     map[string]string // "" takes one away
		status     int
		says       string
	}{
		"as it should be":              {path: list, status: 200, says: `"processes"`},
		"no token":                     {path: list, header: map[string]string{"X-Access-Token": ""}, status: 401, says: `"unauthenticated"`},
		"another sandbox's token":      {path: list, header: map[string]string{"X-Access-Token": "token-sb02"}, status: 401, says: `"unauthenticated"`},
		"a longer token":               {path: list, header: map[string]string{"X-Access-Token": "token-sb01x"}, status: 401, says: `"unauthenticated"`},
		"no token for a file":          {path: "/files?path=x", header: map[string]string{"X-Access-Token": ""}, status: 401, says: `"code":401`},
		"no token for metrics":         {path: "/metrics", header: map[string]string{"X-Access-Token": ""}, status: 401, says: `"code":401`},
		"health takes no token":        {path: "/health", header: map[string]string{"X-Access-Token": ""}, status: 204},
		"metrics":                      {path: "/metrics", status: 200, says: `"mem_used":268435456`},
		"unknown sandbox":              {path: "/health", header: map[string]string{headerSandbox: "sb99"}, status: 502, says: `"sandboxId":"sb99"`},
		"unknown sandbox, with a call": {path: list, header: map[string]string{headerSandbox: "sb99"}, status: 502, says: "not found"},
		"no sandbox":                   {path: list, header: map[string]string{headerSandbox: ""}, status: 400, says: headerSandbox},
		"an id that can't be one":      {path: list, header: map[string]string{headerSandbox: "../sb01"}, status: 400, says: "no port of a sandbox"},
		"a port that can't be one":     {path: list, header: map[string]string{headerPort: "049983"}, status: 400, says: "no port of a sandbox"},
		"the interpreter":              {path: "/execute", header: map[string]string{headerPort: "49999"}, status: 501, says: "code interpreter"},
		"by host":                      {path: list, host: "49983-sb01.box.example", header: map[string]string{headerSandbox: "", headerPort: ""}, status: 200},
		"by host with a port":          {path: list, host: "49983-SB01.Box.Example:7433", header: map[string]string{headerSandbox: "", headerPort: ""}, status: 200},
		"host and header agree":        {path: list, host: "49983-sb01.box.example", status: 200},
		"host and header disagree":     {path: list, host: "49983-sb02.box.example", status: 400, says: "different sandboxes"},
		"by a long host":               {path: list, host: "49983-sb01-client7.box.example", header: map[string]string{headerSandbox: "", headerPort: ""}, status: 200},
		"by a long id":                 {path: list, header: map[string]string{headerSandbox: "sb01-client7"}, status: 200},
		"a long host and an id":        {path: list, host: "49983-sb01-client7.box.example", status: 200},
		"a client that can't be one":   {path: list, header: map[string]string{headerSandbox: "sb01-a-b"}, status: 400, says: "no port of a sandbox"},
		"a host that is no port":       {path: list, host: "x-sb01.box.example", header: map[string]string{headerSandbox: "", headerPort: ""}, status: 400, says: "not PORT-SANDBOX"},
		"unknown path":                 {path: "/nothing", status: 501, says: "has no"},
		"another method":               {path: "/files/compose", status: 501, says: "has no"},
	} {
		t.Run(name, func(t *testing.T) {
			method, body := http.MethodGet, ""
			if c.path == list {
				method, body = http.MethodPost, "{}"
			}
			r := s.request(method, c.path, strings.NewReader(body))
			r.Header.Set("Content-Type", typeUnary)
			if c.host != "" {
				r.Host = c.host
			}
			for k, v := range c.header {
				r.Header.Set(k, v)
				if v == "" {
					r.Header.Del(k)
				}
			}
			status, answer := s.do(r)
			if status != c.status || !strings.Contains(answer, c.says) {
				t.Errorf("got %d %s", status, answer)
			}
		})
	}
}

func TestWhatTheDataPlaneOwns(t *testing.T) {
	s := newDataStage(t)
	for _, c := range []struct {
		path, host, id string
		want           bool
	}{
		{"/health", "api.example", "", false},
		{"/health", "api.example", "sb01", true},
		{"/health", "3000-sb01.box.example", "", true},
		{"/health", "box.example", "", false},
		{"/health", "a.3000-sb01.box.example", "", false},
		{"/files?path=x&signature=v1_y", "api.example", "", true},
		{"/files?path=x", "api.example", "", false},
		{"/v2/files?signature=v1_y", "api.example", "", false},
	} {
		r := s.request(http.MethodGet, c.path, nil)
		r.Host = c.host
		r.Header.Del(headerPort)
		r.Header.Set(headerSandbox, c.id)
		if got := s.data.Owns(r); got != c.want {
			t.Errorf("%+v: owned is %t", c, got)
		}
		if !s.data.Holds(r, "sb01") || s.data.Holds(r, "sb02") {
			t.Errorf("%+v: its token is another sandbox's", c)
		}
	}
}

func TestSandboxesThatDoNotAnswer(t *testing.T) {
	s := newDataStage(t)
	for state, says := range map[sandbox.State]string{
		sandbox.Creating: TextNotFound, sandbox.Paused: TextPaused, sandbox.Destroying: TextNotFound, sandbox.Failed: TextNotFound, sandbox.Destroyed: TextNotFound,
	} {
		s.box.Become(state)
		for _, path := range []string{"/health", "/files?path=x"} {
			status, body := s.do(s.request(http.MethodGet, path, nil))
			if status != http.StatusBadGateway || !strings.Contains(body, `"`+says+`"`) {
				t.Errorf("%s of one that is %s: %d %s", path, state, status, body)
			}
		}
		if status, body := s.ask(processService+"List", "{}"); status != http.StatusBadGateway || !strings.Contains(body, `"`+says+`"`) {
			t.Errorf("a call to one that is %s: %d %s", state, status, body)
		}
	}
}

func TestASilentSandboxDoesNotAnswer(t *testing.T) {
	s := newDataStage(t)
	s.box.Become(sandbox.Paused)
	s.box.WasSilent(true)
	if status, body := s.do(s.request(http.MethodGet, "/files?path=x", nil)); status != http.StatusBadGateway || !strings.Contains(body, `"`+TextSilent+`"`) {
		t.Errorf("%d %s", status, body)
	}
}

func TestSignatures(t *testing.T) {
	s := newDataStage(t)
	s.add("sb02")
	if status, body := s.do(s.request(http.MethodPost, "/files?path=a.txt", nil)); status != http.StatusBadRequest {
		t.Fatalf("%d %s", status, body)
	}
	up := s.request(http.MethodPost, "/files?path=a.txt", strings.NewReader("text"))
	up.Header.Set("Content-Type", "application/octet-stream")
	if status, body := s.do(up); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	const past, future = "1700000000", "99999999999"
	sign := func(op, expires string) string { return Sign("a.txt", op, "", "token-"+boxID, expires) }
	for name, c := range map[string]struct {
		query  string
		status int
		says   string
	}{
		"good":                    {"signature=" + sign("read", ""), 200, "text"},
		"good for a while":        {"signature=" + sign("read", future) + "&signature_expiration=" + future, 200, "text"},
		"over":                    {"signature=" + sign("read", past) + "&signature_expiration=" + past, 401, `{"code":401,"message":"signature is already expired"}`},
		"prolonged":               {"signature=" + sign("read", past) + "&signature_expiration=" + future, 401, "no sandbox"},
		"for ever":                {"signature=" + sign("read", future), 401, "no sandbox"},
		"for writing":             {"signature=" + sign("write", ""), 401, "no sandbox"},
		"of a sandbox that is no": {"signature=" + Sign("a.txt", "read", "", "token-sb99", ""), 401, "no sandbox"},
		"empty":                   {"signature=", 401, "no sandbox"},
		"no number":               {"signature=" + sign("read", "x") + "&signature_expiration=x", 400, "not a time"},
	} {
		t.Run(name, func(t *testing.T) {
			query := strings.NewReplacer("+", "%2B", "/", "%2F").Replace(c.query)
			for _, named := range []bool{false, true} {
				r := s.request(http.MethodGet, "/files?path=a.txt&"+query, nil)
				r.Header.Del("X-Access-Token")
				if !named {
					r.Header.Del(headerSandbox)
					r.Header.Del(headerPort)
				}
				status, body := s.do(r)
				says := c.says
				if named && says == "no sandbox" {
					says = "invalid signature"
				}
				if status != c.status || !strings.Contains(body, says) {
					t.Errorf("sandbox named is %t: %d %s", named, status, body)
				}
			}
		})
	}
}

// TestASignatureIsForOneVerb: what was signed for reading writes nothing, and the other
// way round.
func TestASignatureIsForOneVerb(t *testing.T) {
	s := newDataStage(t)
	if status, body := s.post("/files?path=a.txt", octetStream, strings.NewReader("old")); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	for _, c := range []struct {
		method, op string
		good       bool
	}{
		{http.MethodGet, "read", true},
		{http.MethodHead, "read", true},
		{http.MethodPost, "write", true},
		{http.MethodGet, "write", false},
		{http.MethodHead, "write", false},
		{http.MethodPost, "read", false},
		{http.MethodPut, "write", false},
		{http.MethodDelete, "write", false},
		{http.MethodDelete, "read", false},
		{http.MethodPatch, "read", false},
	} {
		for _, named := range []bool{false, true} {
			sum := strings.NewReplacer("+", "%2B", "/", "%2F").Replace(Sign("a.txt", c.op, "", "token-"+boxID, ""))
			var body io.Reader
			if c.method != http.MethodGet && c.method != http.MethodHead {
				body = strings.NewReader("new")
			}
			r := s.request(c.method, "/files?path=a.txt&signature="+sum, body)
			r.Header.Set("Content-Type", octetStream)
			r.Header.Del("X-Access-Token")
			if !named {
				r.Header.Del(headerSandbox)
				r.Header.Del(headerPort)
			}
			before := s.file("home/user/a.txt")
			status, answer := s.do(r)
			if (status == http.StatusOK) != c.good || !c.good && status != http.StatusUnauthorized {
				t.Errorf("%s by a signature to %s, sandbox named is %t: %d %s", c.method, c.op, named, status, answer)
			}
			if after := s.file("home/user/a.txt"); !c.good && after != before {
				t.Errorf("%s by a signature to %s wrote %q", c.method, c.op, after)
			}
		}
	}
}

// TestASignedURLIsOfItsUser: who has one can't be root by saying so.
func TestASignedURLIsOfItsUser(t *testing.T) {
	for name, c := range map[string]struct {
		path, token, want string
	}{
		"signed":                    {"/files?path=x&signature=y", "", ""},
		"signed for root":           {"/files?path=x&signature=y&username=root", "", rootUser},
		"with the token":            {"/files?path=x", "token-" + boxID, rootUser},
		"with both, the token says": {"/files?path=x&signature=y", "token-" + boxID, rootUser},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDataStage(t)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, nil)
			r.SetBasicAuth(rootUser, "")
			if c.token != "" {
				r.Header.Set(headerAccess, c.token)
			}
			box, err := s.boxes.Get(boxID)
			if err != nil {
				t.Fatal(err)
			}
			got, err := (&call{Request: r, box: box, id: boxID}).queryUser()
			if err != nil || got != c.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// TestSignatureForm: the form is the clients', who sign by themselves.
func TestSignatureForm(t *testing.T) {
	if got, want := Sign("/home/user/a b.txt", "read", "user", "secret", "1700000000"), "v1_DaLKNNbTrtXIZaCsNrvLVlXNVBQJBGBKoJ6hPjWns+A"; got != want {
		t.Errorf("got %s", got)
	}
}

func TestRefusalsAreJSON(t *testing.T) {
	s := newDataStage(t)
	_, body := s.do(s.request(http.MethodGet, "/files?path=nothing", nil))
	var got struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || got.Code != 404 || !strings.Contains(got.Message, "does not exist") {
		t.Errorf("%v: %s", err, body)
	}
}
