package e2e

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy/preset"
)

// The hosts of models' APIs for which models stands in.
const (
	anthropicHost = "api.anthropic.com"
	openAIHost    = "api.openai.com"
	geminiHost    = "generativelanguage.googleapis.com"
)

// saying is what every model answers.
const saying = "Hello from the stand-in."

// models stands in for the hosts of all presets, over TLS on loopback, until the script's end.
// The APIs of three makers of models answer one turn each, in their maker's protocol. The
// file requests has what came, with the credential as the host saw it; ca.pem is the
// authority of their certificate, and the configuration has the names lead there.
func models(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: models")
	}
	shipped, err := preset.Read()
	ts.Check(err)
	var names []string
	for _, p := range shipped.Presets {
		for _, host := range p.Hosts {
			if host.Kind == yaml.ScalarNode && !slices.Contains(names, host.Value) {
				names = append(names, host.Value)
			}
		}
	}
	cert, ca, err := certified(names...)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), ca, 0o644))
	server := httptest.NewUnstartedServer(&modelAPI{&hostLog{path: ts.MkAbs("requests")}})
	server.TLS, server.EnableHTTP2 = &tls.Config{Certificates: []tls.Certificate{cert}}, true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it come, too
	server.StartTLS()
	ts.Defer(server.Close)
	text := "network:\n  hosts:\n"
	for _, name := range names {
		text += fmt.Sprintf("    - { name: %q, port: 443, address: %q, ca_file: %q }\n", name, server.Listener.Addr(), ts.MkAbs("ca.pem"))
	}
	ts.Check(os.WriteFile(stateFile(ts, "config.yaml"), []byte(text), 0o600))
}

// modelAPI answers for all of them.
type modelAPI struct{ log *hostLog }

func (m *modelAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	if err == nil {
		err = m.log.write("%s %s %s %s", r.Method, r.Host, r.URL.Path, keyOf(r))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	switch {
	case r.Host == anthropicHost && r.URL.Path == "/v1/messages":
		anthropicTurn(w, body)
	case strings.HasSuffix(r.URL.Path, "/hello"): // is anybody there?
		answer(w, `{"message":"hello"}`)
	case r.Host == openAIHost && r.URL.Path == "/v1/responses" && r.Method == http.MethodPost:
		events(w, openAITurn)
	case r.Header.Get("Upgrade") != "":
		http.Error(w, "the stand-in has no WebSockets", http.StatusUpgradeRequired)
	case r.Host == geminiHost && strings.HasSuffix(r.URL.Path, ":streamGenerateContent"):
		events(w, []string{fmt.Sprintf(geminiForm, saying)})
	case r.Host == geminiHost && strings.HasSuffix(r.URL.Path, ":generateContent"): // which of its models should answer
		answer(w, fmt.Sprintf(geminiForm, `{\"complexity_reasoning\":\"a greeting\",\"complexity_score\":1}`))
	case strings.HasSuffix(r.URL.Path, "count_tokens"):
		answer(w, `{"input_tokens":7}`)
	case strings.HasSuffix(r.URL.Path, ":countTokens"):
		answer(w, `{"totalTokens":7}`)
	default:
		w.WriteHeader(http.StatusNotFound)
		answer(w, `{"type":"error","error":{"type":"not_found_error","message":"the stand-in has nothing here"}}`)
	}
}

// keyOf is the credential of a request, wherever its API has it.
func keyOf(r *http.Request) string {
	for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key", "Authorization"} {
		if text := r.Header.Get(name); text != "" {
			return name + ": " + text
		}
	}
	return "no key"
}

func answer(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, text) // a client that went away has gone
}

// events sends server-sent events; an event's name is its type.
func events(w http.ResponseWriter, all []string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range all {
		var of struct {
			Type string `json:"type"`
		}
		if json.Unmarshal([]byte(event), &of) == nil && of.Type != "" {
			fmt.Fprintf(w, "event: %s\n", of.Type)
		}
		fmt.Fprintf(w, "data: %s\n\n", event)
		w.(http.Flusher).Flush()
	}
}

// anthropicTurn is a message, as a stream if that was asked for.
func anthropicTurn(w http.ResponseWriter, body []byte) {
	var asked struct {
		Stream bool `json:"stream"`
	}
	if json.Unmarshal(body, &asked) != nil || !asked.Stream {
		answer(w, `{"id":"msg_1","type":"message","role":"assistant","model":"stand-in","content":[{"type":"text","text":"`+saying+`"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":5}}`)
		return
	}
	events(w, []string{
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"stand-in","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + saying + `"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}`,
		`{"type":"message_stop"}`,
	})
}

// openAITurn is a turn of the Responses API.
var openAITurn = []string{
	`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","model":"stand-in","output":[]}}`,
	`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"message","id":"msg_1","status":"in_progress","role":"assistant","content":[]}}`,
	`{"type":"response.output_text.delta","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"` + saying + `","logprobs":[]}`,
	`{"type":"response.output_item.done","sequence_number":3,"output_index":0,"item":{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"` + saying + `","annotations":[],"logprobs":[]}]}}`,
	`{"type":"response.completed","sequence_number":4,"response":{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"stand-in","output":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"` + saying + `","annotations":[],"logprobs":[]}]}],"usage":{"input_tokens":7,"input_tokens_details":{"cached_tokens":0},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":12}}}`,
}

// geminiForm is an answer of generateContent, streamed or not, with a place for its text.
const geminiForm = `{"candidates":[{"content":{"role":"model","parts":[{"text":"%s"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":5,"totalTokenCount":12},"modelVersion":"stand-in","responseId":"r1"}`
