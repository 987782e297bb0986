package e2b

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

func beginInput(pid int) string { return fmt.Sprintf(`{"start":{"process":{"pid":%d}}}`, pid) }

func moreInput(text string) string {
	return fmt.Sprintf(`{"data":{"input":{"stdin":%q}}}`, base64.StdEncoding.EncodeToString([]byte(text)))
}

// streamed is a client stream of input: its answer's messages.
func (s *dataStage) streamed(body io.Reader, kind string, headers ...string) (messages []string, end *failure) {
	s.t.Helper()
	r := s.request(http.MethodPost, processService+"StreamInput", body)
	r.Header.Set("Content-Type", kind)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := s.server.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		s.t.Fatalf("%d %s", res.StatusCode, text)
	}
	for {
		var head [envelopeSize]byte
		if _, err := io.ReadFull(res.Body, head[:]); err != nil {
			s.t.Fatal(err)
		}
		payload := make([]byte, binary.BigEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(res.Body, payload); err != nil {
			s.t.Fatal(err)
		}
		if head[0] == flagEnd {
			var last struct{ Error *failure }
			if err := json.Unmarshal(payload, &last); err != nil {
				s.t.Fatal(err)
			}
			return messages, last.Error
		}
		messages = append(messages, string(payload))
	}
}

func inputOf(messages ...string) *bytes.Buffer {
	all := &bytes.Buffer{}
	for _, m := range messages {
		all.Write(envelope(0, m))
	}
	return all
}

// TestStreamedInput: it arrives whole, in order, before the call is answered, in both forms; the command's
// input stays open.
func TestStreamedInput(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		e := s.open(processService+"Start", shell("cat"))
		pid := e.started()
		if messages, end := s.streamed(inputOf(beginInput(pid), moreInput("one\n"), `{"keepalive":{}}`, moreInput("two\n")), typeStream); end != nil || len(messages) != 1 || messages[0] != "{}" {
			t.Fatalf("%q %v", messages, end)
		}
		e.until("one\ntwo\n")
		process := put(1, string(protowire.AppendVarint([]byte{0x08}, uint64(pid))))
		in := inputOf(put(1, process), put(3, ""), put(2, put(2, put(1, "three\n"))))
		if messages, end := s.streamed(in, typeStreamProto); end != nil || len(messages) != 1 || messages[0] != "" {
			t.Fatalf("%q %v", messages, end)
		}
		e.until("three\n")
		s.got(processService+"CloseStdin", fmt.Sprintf(`{"process":{"pid":%d}}`, pid))
		if last, _ := e.finish(); last == nil || !last.Exited || last.ExitCode != 0 {
			t.Errorf("%+v", last)
		}
		terminal := s.open(processService+"Start", `{"process":{"cmd":"/bin/cat"},"pty":{}}`)
		if _, end := s.streamed(inputOf(beginInput(terminal.started()), `{"data":{"input":{"pty":"eHl6Cg=="}}}`), typeStream); end != nil {
			t.Fatal(end)
		}
		terminal.until("xyz")
	})
}

func TestStreamedInputIsRefused(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		pid := s.open(processService+"Start", shell("cat")).started()
		deaf := s.open(processService+"Start", `{"process":{"cmd":"/bin/sleep","args":["60"]},"stdin":false}`).started()
		for name, c := range map[string]struct {
			in   io.Reader
			code code
		}{
			"nothing":             {inputOf(), codeInvalid},
			"no start":            {inputOf(moreInput("x")), codeInvalid},
			"two starts":          {inputOf(beginInput(pid), beginInput(pid)), codeInvalid},
			"no such process":     {inputOf(beginInput(1<<20), moreInput("x")), codeNotFound},
			"no selector":         {inputOf(`{"start":{}}`), codeInvalid},
			"one without stdin":   {inputOf(beginInput(deaf), moreInput("x")), codePrecondition},
			"data without input":  {inputOf(beginInput(pid), `{"data":{}}`), codeInvalid},
			"a message of no use": {inputOf(beginInput(pid), `{}`), codeInvalid},
			"data beside start":   {inputOf(fmt.Sprintf(`{"start":{"process":{"pid":%d}},"data":{"input":{"stdin":"eA=="}}}`, pid)), codeInvalid},
			"two of the three":    {inputOf(beginInput(pid), `{"data":{"input":{"stdin":"eA=="}},"keepalive":{}}`), codeInvalid},
			"cut short":           {bytes.NewReader(inputOf(beginInput(pid), moreInput("x")).Bytes()[:len(beginInput(pid))+envelopeSize+3]), codeInvalid},
			"compressed":          {bytes.NewReader(envelope(flagCompressed, beginInput(pid))), codeInternal},
		} {
			if messages, end := s.streamed(c.in, typeStream); end == nil || end.Code != c.code || len(messages) != 0 {
				t.Errorf("%s: %q %v", name, messages, end)
			}
		}
	})
}

// TestStreamedInputThatPauses: the client's time, and the sandbox's end, end a stream whose client has nothing to say.
func TestStreamedInputThatPauses(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		e := s.open(processService+"Start", shell("cat"))
		pid := e.started()
		silent, more := io.Pipe()
		defer more.Close()
		go func() { _, _ = more.Write(inputOf(beginInput(pid), moreInput("said\n")).Bytes()) }()
		if _, end := s.streamed(silent, typeStream, "Connect-Timeout-Ms", "300"); end == nil || end.Code != codeDeadline {
			t.Errorf("the time is over: %v", end)
		}
		e.until("said\n")
		waiting, rest := io.Pipe()
		defer rest.Close()
		go func() {
			_, _ = rest.Write(inputOf(beginInput(pid), moreInput("again\n")).Bytes())
		}()
		answered := make(chan string, 1)
		r := s.request(http.MethodPost, processService+"StreamInput", waiting)
		r.Header.Set("Content-Type", typeStream)
		go func() {
			res, err := s.server.Client().Do(r)
			if err != nil {
				answered <- err.Error()
				return
			}
			defer res.Body.Close()
			text, _ := io.ReadAll(res.Body)
			answered <- fmt.Sprint(res.StatusCode, " ", string(text))
		}()
		e.until("again\n")
		if err := s.boxes.Destroy(t.Context(), boxID); err != nil {
			t.Fatal(err)
		}
		if got := <-answered; !strings.HasPrefix(got, "502 ") || !strings.Contains(got, TextNotFound) {
			t.Errorf("the sandbox ended: %s", got)
		}
	})
}

// TestStreamedInputIsRefusedToASilentClient: who is refused hears of it though it keeps its stream open and says
// no more.
func TestStreamedInputIsRefusedToASilentClient(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		body, more := io.Pipe()
		defer more.Close()
		go func() { _, _ = more.Write(inputOf(beginInput(1 << 20)).Bytes()) }()
		if _, end := s.streamed(body, typeStream); end == nil || end.Code != codeNotFound {
			t.Errorf("%v", end)
		}
	})
}
