package e2b

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// TestTextThatIsNone: a message with bytes that are no UTF-8, or with half of a surrogate pair, is
// refused in both forms of each call that names something, where encoding/json would make U+FFFD of it.
func TestTextThatIsNone(t *testing.T) {
	t.Parallel()
	for moment, message := range map[string]string{
		"argument":        `{"process":{"cmd":"printf","args":["%s"]}}`,
		"program":         `{"process":{"cmd":"%s"}}`,
		"variable's name": `{"process":{"cmd":"x","envs":{"A%s":"1"}}}`,
		"variable":        `{"process":{"cmd":"x","envs":{"A":"%s"}}}`,
		"folder":          `{"process":{"cmd":"x","cwd":"/%s"}}`,
		"path":            `{"path":"/%s"}`,
		"source":          `{"source":"/%s","destination":"/x"}`,
		"destination":     `{"source":"/x","destination":"/%s"}`,
	} {
		for _, none := range []string{`\udcff`, `\ud83d`, `\ud83dx`, "\xff"} {
			var v map[string]any
			if err := decodeMessage(fmt.Appendf(nil, message, none), &v); err == nil || !strings.Contains(err.Error(), "UTF-8") {
				t.Errorf("%s: %q came through as %v", moment, none, v)
			}
		}
		var v map[string]any
		if err := decodeMessage(fmt.Appendf(nil, message, `\ud83d\ude00`), &v); err != nil {
			t.Errorf("%s: a pair is refused: %v", moment, err)
		}
	}
	for path, codec := range newCodecs() {
		fields := codec.in.Fields()
		for i := range fields.Len() {
			field := fields.Get(i)
			if field.Kind().String() != "string" || field.IsMap() {
				continue
			}
			data := protowire.AppendString(protowire.AppendTag(nil, field.Number(), protowire.BytesType), "bad\xff")
			var v map[string]any
			if err := codec.decodeMessage(data, &v); err == nil {
				t.Errorf("%s: the %s of a binary message came through as %v", path, field.Name(), v)
			}
		}
	}
}

// TestEmptyTexts: a command, a variable, an argument, an input and a file with nothing in them are
// what they are; an empty folder and user are the sandbox's own. An empty input is not its end.
func TestEmptyTexts(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, s *dataStage) {
		nothing := s.open(processService+"Start", `{"process":{"cmd":"/bin/bash","args":["-c",""],"envs":{},"cwd":""},"tag":""}`)
		nothing.started()
		if last, problem := nothing.finish(); problem != nil || last == nil || last.ExitCode != 0 || last.Error != "" {
			t.Errorf("an empty program ended with %+v, %v", last, problem)
		}
		words := s.open(processService+"Start", `{"process":{"cmd":"/bin/bash","args":["-c","test -z \"$1\" && echo ${EMPTY+set}-$EMPTY-$#; cat; echo over","bash","","b"],"envs":{"EMPTY":""}},"stdin":true}`)
		pid := words.started()
		s.got(processService+"SendInput", input(pid, ""))
		s.got(processService+"SendInput", input(pid, "said\n"))
		s.got(processService+"CloseStdin", fmt.Sprintf(`{"process":{"pid":%d}}`, pid))
		words.until("set--2\nsaid\nover\n")
		s.post("/files?path=empty&username=", octetStream, nil)
		if status, body := s.do(s.request("GET", "/files?path=empty", nil)); status != http.StatusOK || body != "" {
			t.Errorf("an empty file: %d %q", status, body)
		}
	})
}

// TestNamesThatAreNoText: a list has U+FFFD for bytes that are no UTF-8, and what is done to a path
// with it is refused: nobody can tell whether that file is meant, or the one whose name has it.
func TestNamesThatAreNoText(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, s *dataStage) {
		home := filepath.Join(s.box.Files.Root, "home/user")
		dir := filepath.Join(home, "d")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"bad\xff", "bad\ufffd", "é"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("kept"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		fs := filesystemService
		listed := map[string]int{}
		for _, e := range s.got(fs+"ListDir", `{"path":"d"}`)["entries"].([]any) {
			listed[e.(map[string]any)["name"].(string)]++
		}
		if len(listed) != 2 || listed["bad\ufffd"] != 2 || listed["é"] != 1 {
			t.Errorf("the list has %v", listed)
		}
		for call, body := range map[string]string{
			"Remove": `{"path":"d/bad\ufffd"}`, "Stat": `{"path":"d/bad\ufffd"}`, "ListDir": `{"path":"d/bad\ufffd"}`, "MakeDir": `{"path":"d/more\ufffd"}`,
			"Move": `{"source":"d/bad\ufffd","destination":"d/x"}`, "CreateWatcher": `{"path":"d/bad\ufffd"}`,
		} {
			if status, answer := s.ask(fs+call, body); status != http.StatusBadRequest || !strings.Contains(answer, "U+FFFD") {
				t.Errorf("%s: %d %s", call, status, answer)
			}
		}
		if status, answer := s.ask(fs+"Move", `{"source":"d/é","destination":"d/bad\ufffd"}`); status != http.StatusBadRequest {
			t.Errorf("a move onto it: %d %s", status, answer)
		}
		for _, path := range []string{"d/bad\ufffd", "d/bad\xff"} {
			at := "/files?path=" + url.QueryEscape(path)
			if status, _ := s.do(s.request("GET", at, nil)); status != http.StatusBadRequest {
				t.Errorf("%q is read: %d", path, status)
			}
			if status, _ := s.post(at, octetStream, strings.NewReader("other")); status != http.StatusBadRequest {
				t.Errorf("%q is written: %d", path, status)
			}
		}
		s.got(fs+"Remove", `{"path":"d/é"}`) // the control
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 2 {
			t.Errorf("left are %v, %v", left, err)
		}
		for _, e := range left {
			if text, err := os.ReadFile(filepath.Join(dir, e.Name())); err != nil || string(text) != "kept" {
				t.Errorf("%q has %q, %v", e.Name(), text, err)
			}
		}
	})
}
