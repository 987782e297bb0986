package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
)

// cellCaller runs cells of one sandbox over the wire of the SDKs.
type cellCaller struct{ url, sandbox, access string }

func (c cellCaller) run(ctx context.Context, language, code string) (string, error) {
	body, err := json.Marshal(map[string]string{"code": code, "language": language})
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/execute", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	for name, value := range map[string]string{"E2b-Sandbox-Id": c.sandbox, "E2b-Sandbox-Port": "49999", "X-Access-Token": c.access, "Content-Type": "application/json"} {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return string(text), err
}

// TestAKernelOutlivesItsDaemon: a cell runs when the daemon is killed. The next one finds the
// kernel with what its cells have made, and gives it a cell only when the other has ended, soon
// by itself or since it was interrupted: that one counts for as long as it runs, and counts no
// more.
func TestAKernelOutlivesItsDaemon(t *testing.T) {
	t.Parallel()
	in := start(t, "default_template: debian\nlisten: { address: \"127.0.0.1:0\" }\n")
	t.Cleanup(func() { in.revive(t) }) // before it is stopped
	_, url, key := in.clientOf(t, api.MakeToken{Name: "cells"})
	made := struct {
		SandboxID       string `json:"sandboxID"`
		EnvdAccessToken string `json:"envdAccessToken"`
	}{}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/sandboxes", strings.NewReader(`{"templateID":"debian","timeout":600,"secure":true}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", key)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&made); err != nil || answer.StatusCode != http.StatusCreated {
		t.Fatalf("create: %s, %v", answer.Status, err)
	}
	cells := cellCaller{url, made.SandboxID, made.EnvdAccessToken}
	for language, c := range map[string]struct{ keep, count, seen string }{
		"javascript": {
			"var kept = 'kept'; 1", "var n = 0; while (n < 75) { n++; await new Promise((r) => setTimeout(r, 20)); require('fs').writeFileSync('/tmp/n', String(n)) }",
			"const before = require('fs').readFileSync('/tmp/n', 'utf8'); await new Promise((r) => setTimeout(r, 500)); console.log(kept, before === require('fs').readFileSync('/tmp/n', 'utf8') ? 'alone' : 'beside')",
		},
		"bash": {
			"kept=kept", "n=0; while [ $n -lt 10000 ]; do n=$((n+1)); echo $n >/tmp/m; sleep 0.02; done",
			"before=$(cat /tmp/m); sleep 0.5; [ \"$before\" = \"$(cat /tmp/m)\" ] && echo $kept alone || echo $kept beside",
		},
	} {
		t.Run(language, func(t *testing.T) {
			if said, err := cells.run(t.Context(), language, c.keep); err != nil || strings.Contains(said, `"error"`) {
				t.Fatalf("%s, %v", said, err)
			}
			file := map[string]string{"javascript": "/tmp/n", "bash": "/tmp/m"}[language]
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { _, _ = cells.run(ctx, language, c.count) }() // ends with the daemon
			sb := api.Sandbox{ID: made.SandboxID}
			until(t, "the cell counts", func() bool { return in.run(sb, "test", "-s", file).Exit.Code == 0 })
			in.kill(t)
			in.launch(t)
			in.answers(t)
			_, cells.url, _ = in.clientOf(t, api.MakeToken{Name: "cells-" + language})
			said, err := cells.run(t.Context(), language, c.seen)
			if err != nil || !strings.Contains(said, "kept alone") {
				t.Errorf("the next cell says %s, %v", said, err)
			}
		})
	}
}
