package e2b

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

func TestUnaryCalls(t *testing.T) {
	s := newDataStage(t)
	const stat = filesystemService + "Stat"
	deep := strings.Repeat(`{"x":`, 40) + "1" + strings.Repeat("}", 40)
	for name, c := range map[string]struct {
		path, body string
		header     map[string]string
		status     int
		code       code
	}{
		"an empty message":            {body: "", status: 400, code: codeInvalid}, // Stat of no path
		"unknown fields":              {path: processService + "List", body: `{"later":{"a":[1,2]}}`, status: 200},
		"nothing at all":              {path: processService + "List", body: "", status: 200},
		"not JSON":                    {body: `{"path":`, status: 400, code: codeInvalid},
		"an array":                    {body: `[]`, status: 400, code: codeInvalid},
		"two values":                  {body: `{} {}`, status: 400, code: codeInvalid},
		"a wrong type":                {body: `{"path":7}`, status: 400, code: codeInvalid},
		"a key twice":                 {body: `{"path":"a","path":"b"}`, status: 400, code: codeInvalid},
		"a key in two cases":          {body: `{"path":"a","Path":"b"}`, status: 400, code: codeInvalid},
		"deep":                        {body: deep, status: 400, code: codeInvalid},
		"not UTF-8":                   {body: "{\"path\":\"\xff\"}", status: 400, code: codeInvalid},
		"too long":                    {body: `{"path":"` + strings.Repeat("x", maxMessage) + `"}`, status: 429, code: codeExhausted},
		"gzip":                        {body: "{}", header: map[string]string{"Content-Encoding": "gzip"}, status: 501, code: codeUnimplemented},
		"another protocol":            {body: "{}", header: map[string]string{"Connect-Protocol-Version": "2"}, status: 400, code: codeInvalid},
		"a timeout in words":          {body: "{}", header: map[string]string{"Connect-Timeout-Ms": "soon"}, status: 400, code: codeInvalid},
		"JSON that is said not to be": {body: "{}", header: map[string]string{"Content-Type": typeUnaryProto}, status: 400, code: codeInvalid},
		"another type":                {body: "{}", header: map[string]string{"Content-Type": "application/grpc"}, status: 415},
		"a stream's type":             {body: "{}", header: map[string]string{"Content-Type": typeStream}, status: 415},
		"latin":                       {body: "{}", header: map[string]string{"Content-Type": "application/json; charset=latin1"}, status: 415},
		"an unknown call":             {path: processService + "Explode", body: "{}", status: 501},
		"a selector of nothing":       {path: processService + "SendSignal", body: `{"signal":"SIGNAL_SIGKILL"}`, status: 400, code: codeInvalid},
		"a selector of too much":      {path: processService + "CloseStdin", body: `{"process":{"pid":1,"tag":"a"}}`, status: 400, code: codeInvalid},
		"a pid as text":               {path: processService + "CloseStdin", body: `{"process":{"pid":"12345678"}}`, status: 404, code: codeNotFound},
		"a negative pid":              {path: processService + "CloseStdin", body: `{"process":{"pid":-1}}`, status: 400, code: codeInvalid},
		"a signal of no name":         {path: processService + "SendSignal", body: `{"process":{"pid":1},"signal":"SIGNAL_SIGSEGV"}`, status: 400, code: codeInvalid},
		"bytes that are none":         {path: processService + "SendInput", body: `{"process":{"pid":1},"input":{"stdin":"!"}}`, status: 400, code: codeInvalid},
		"a file that is not":          {body: `{"path":"nothing"}`, status: 404, code: codeNotFound},
		"a path with a zero":          {body: `{"path":"a\u0000b"}`, status: 400, code: codeInvalid},
		"another user":                {body: `{"path":"."}`, header: map[string]string{"Authorization": "Basic bm9ib2R5Og=="}, status: 401, code: codeUnauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			path := c.path
			if path == "" {
				path = stat
			}
			r := s.request(http.MethodPost, path, strings.NewReader(c.body))
			r.Header.Set("Content-Type", typeUnary)
			for k, v := range c.header {
				r.Header.Set(k, v)
			}
			status, body := s.do(r)
			var got failure
			if c.code != "" {
				if err := json.Unmarshal([]byte(body), &got); err != nil {
					t.Errorf("%v: %s", err, body)
				}
			}
			if status != c.status || got.Code != c.code {
				t.Errorf("got %d %s", status, text.Shorten(body, 200))
			}
		})
	}
}

func TestStreamsThatDoNotBegin(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		good := `{"process":{"cmd":"/bin/true"}}`
		for name, c := range map[string]struct {
			body   []byte
			header map[string]string
			code   code
		}{
			"nothing":            {nil, nil, codeInvalid},
			"half a head":        {[]byte{0, 0}, nil, codeInvalid},
			"half a message":     {envelope(0, good)[:20], nil, codeInvalid},
			"a claim of 4 GiB":   {[]byte{0, 255, 255, 255, 255, '{'}, nil, codeExhausted},
			"two messages":       {append(envelope(0, good), envelope(0, good)...), nil, codeInvalid},
			"unknown flags":      {envelope(8, good), nil, codeInvalid},
			"the end":            {envelope(flagEnd, good), nil, codeInvalid},
			"compressed":         {envelope(flagCompressed, good), nil, codeInternal},
			"gzip":               {envelope(0, good), map[string]string{"Connect-Content-Encoding": "gzip"}, codeUnimplemented},
			"a key twice":        {envelope(0, `{"process":{"cmd":"a","cmd":"b"}}`), nil, codeInvalid},
			"no command":         {envelope(0, `{}`), nil, codeInvalid},
			"a zero byte":        {envelope(0, `{"process":{"cmd":"a\u0000b"}}`), nil, codeInvalid},
			"a huge terminal":    {envelope(0, `{"process":{"cmd":"a"},"pty":{"size":{"cols":70000,"rows":1}}}`), nil, codeInvalid},
			"a timeout in words": {envelope(0, good), map[string]string{"Connect-Timeout-Ms": "soon"}, codeInvalid},
			"a long timeout":     {envelope(0, good), map[string]string{"Connect-Timeout-Ms": "12345678901"}, codeInvalid},
			"no pulse":           {envelope(0, good), map[string]string{"Keepalive-Ping-Interval": "0"}, codeInvalid},
			"no such user":       {envelope(0, good), map[string]string{"Authorization": "Basic OTk5OTo="}, codeUnauthenticated},
			"a long tag":         {envelope(0, `{"process":{"cmd":"a"},"tag":"`+strings.Repeat("x", 300)+`"}`), nil, codeInvalid},
			"no such directory":  {envelope(0, `{"process":{"cmd":"/bin/true","cwd":"/nowhere"}}`), nil, codeInvalid},
			"no such program":    {envelope(0, `{"process":{"cmd":"/bin/nothing"}}`), nil, codeInvalid},
		} {
			t.Run(name, func(t *testing.T) {
				r := s.request(http.MethodPost, processService+"Start", bytes.NewReader(c.body))
				r.Header.Set("Content-Type", typeStream)
				for k, v := range c.header {
					r.Header.Set(k, v)
				}
				status, body := s.do(r)
				m, err := (&events{t, io.NopCloser(strings.NewReader(body))}).try()
				if status != http.StatusOK || err != nil || !m.end || m.Error == nil || m.Error.Code != c.code {
					t.Errorf("got %d %v %+v %q", status, err, m.Error, body)
				}
			})
		}
		if found := len(s.box.Commands.List()); found != 3 { // no pulse is seen when it has started
			t.Errorf("%d commands were started", found)
		}
	})
}

func FuzzEnvelope(f *testing.F) {
	f.Add(envelope(0, `{"process":{"pid":1}}`))
	f.Add(envelope(2, `{}`))
	f.Add([]byte{0, 255, 255, 255, 255})
	f.Add(envelope(0, `{"process":{"cmd":"a","args":["b"],"envs":{"c":"d"},"cwd":null},"pty":{"size":{"cols":1,"rows":"2"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		payload, err := nextEnvelope(bytes.NewReader(data))
		if err != nil {
			return
		}
		if len(payload) > len(data)-envelopeSize {
			t.Fatalf("%d bytes became %d", len(data), len(payload))
		}
		var start startRequest
		if decodeMessage(payload, &start) != nil {
			return
		}
		again, err := json.Marshal(start.Process)
		if err != nil || !json.Valid(again) {
			t.Fatal(err)
		}
		var input inputRequest
		_ = decodeMessage(payload, &input)
	})
}

// slowWriter is an answer whose deadline takes a while to set.
type slowWriter struct {
	*httptest.ResponseRecorder
	begun, goOn chan struct{}
	set         atomic.Bool
}

func (w *slowWriter) SetWriteDeadline(time.Time) error {
	close(w.begun)
	<-w.goOn
	w.set.Store(true)
	return nil
}

// TestAStreamsEndTouchesNothingLater: what cuts writes off has returned when the
// stream is closed, and with that before its handler has.
func TestAStreamsEndTouchesNothingLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slowWriter{ResponseRecorder: httptest.NewRecorder(), begun: make(chan struct{}), goOn: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		s := openStream(ctx, w, nil)
		cancel()
		<-w.begun
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			s.closeStream()
			if !w.set.Load() {
				t.Error("the answer is touched after its stream was closed")
			}
		}()
		synctest.Wait()
		close(w.goOn)
		<-closed
	})
}
