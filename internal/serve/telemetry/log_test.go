package telemetry

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/secrets"
)

// TestNoLineHasASecret: neither its message, nor what it says beside that, in either format.
func TestNoLineHasASecret(t *testing.T) {
	t.Parallel()
	const token = "glpat-" + "aB3dE6gH9kaB3dE6gH9k"
	set := sync.OnceValue(func() *dlp.Set { return dlp.NewSet(secrets.Rules()...) })
	for _, format := range []string{"text", "json"} {
		var out, plain bytes.Buffer
		for _, to := range []io.Writer{Masked(&out, set), &plain} {
			log := NewLogger(to, "", format).With("name", token).WithGroup("g")
			log.Error("not "+token, "error", errors.New("no "+token), "command", []string{"curl", token}, slog.Group("of", "url", "https://a.example/"+token))
			log.Info("all is well")
		}
		if text := out.String(); strings.Contains(text, token) || strings.Count(text, strings.Repeat("*", len(token))) != 6 || timeless(text) != timeless(strings.ReplaceAll(plain.String(), token, strings.Repeat("*", len(token)))) || !strings.Contains(text, "all is well") {
			t.Errorf("%s: %s", format, text)
		}
		if strings.Count(plain.String(), token) != 6 { // the control
			t.Errorf("%s: %s", format, plain.String())
		}
	}
}

// TestSecretsInLogLinesAreMaskedInAllWritings: a name that others chose may have a token in it
// that is escaped or encoded.
func TestSecretsInLogLinesAreMaskedInAllWritings(t *testing.T) {
	t.Parallel()
	const token = "glpat-" + "aB3dE6gH9kaB3dE6gH9k"
	set := sync.OnceValue(func() *dlp.Set { return dlp.NewSet(secrets.Rules()...) })
	for _, written := range []string{token, strings.ReplaceAll(token, "-", "%2D"), base64.StdEncoding.EncodeToString([]byte(token)), hex.EncodeToString([]byte(token))} {
		var out, plain bytes.Buffer
		for _, to := range []io.Writer{Masked(&out, set), &plain} {
			NewLogger(to, "", "json").Warn("a name is refused", "name", "https://a.example/"+written+"/b")
		}
		if strings.Contains(out.String(), written) || !strings.Contains(out.String(), "a name is refused") || !strings.Contains(plain.String(), written) {
			t.Errorf("%s: %s of %s", written, out.String(), plain.String())
		}
	}
}

// timeless is lines without their times, which have no zeros at their end.
func timeless(lines string) string {
	return regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]*(Z|[+-]\d\d:\d\d)`).ReplaceAllString(lines, "")
}

func TestEveryLineAboutASandboxNamesItsRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := WithRuns(NewLogger(&out, "", "json"), func(id string) string { return map[string]string{"sb1": "run-1"}[id] })
	ctx := WithRequestID(t.Context(), "q1")
	for _, c := range []struct {
		write func()
		want  map[string]any
	}{
		{func() { log.Info("m", "sandbox", "sb1") }, map[string]any{"sandbox": "sb1", "run": "run-1"}},
		{func() { log.Info("m", "sandbox", "sb2") }, map[string]any{"sandbox": "sb2"}},
		{func() { log.Info("m", "sandbox", "sb1", "run", "mine") }, map[string]any{"sandbox": "sb1", "run": "mine"}},
		{func() { log.With("sandbox", "sb1").Info("m", "n", 1) }, map[string]any{"sandbox": "sb1", "run": "run-1", "n": 1.0}},
		{func() { log.With("run", "mine").Info("m", "sandbox", "sb1") }, map[string]any{"sandbox": "sb1", "run": "mine"}},
		{func() { log.InfoContext(ctx, "m") }, map[string]any{"request": "q1"}},
		{func() { log.WithGroup("g").Info("m", "a", 1) }, map[string]any{"g": map[string]any{"a": 1.0}}},
		{func() { log.Debug("m") }, nil},
	} {
		out.Reset()
		c.write()
		var got map[string]any
		if out.Len() > 0 {
			must(t, json.Unmarshal(out.Bytes(), &got))
		}
		for _, usual := range []string{"time", "level", "msg"} {
			delete(got, usual)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", out.String(), diff)
		}
	}
}

func TestLogLevels(t *testing.T) {
	t.Parallel()
	for level, lines := range map[string]int{"debug": 4, "": 3, "info": 3, "warn": 2, "error": 1} {
		var out bytes.Buffer
		log := NewLogger(&out, level, "text")
		log.Debug("m")
		log.Info("m")
		log.Warn("m")
		log.Error("m")
		if n := bytes.Count(out.Bytes(), []byte("\n")); n != lines {
			t.Errorf("%q: %d lines", level, n)
		}
	}
}
