package tool_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
)

// saying is a runner that answers, or fails, with a text.
type saying struct {
	text, defined string
	fails, cause  bool
}

func (s saying) Definition() string { return s.defined }

func (s saying) Run(context.Context, tool.Call) ([]byte, error) {
	switch {
	case s.cause:
		return nil, &tool.Failure{Sentence: "it failed", Cause: errors.New(s.text)}
	case s.fails:
		return nil, &tool.Failure{Sentence: s.text}
	}
	return []byte(s.text), nil
}

// TestNoAnswerHasASecret: not one of its own, and not another tool's, in whichever form, in what it
// answers, or in why it failed. The controls: what is like it comes.
func TestNoAnswerHasASecret(t *testing.T) {
	const secret, other = `abcdefgh<&>"/ijklmnopqrstuvwxyz0123456789`, `zyxwvuts<&>"/rqponmlkjihgfedcba9876543210`
	schema, err := tool.ParseSchema("")
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]func(string) string{
		"raw": func(s string) string { return s }, "base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte("x" + s)) },
		"JSON": func(s string) string {
			b, _ := json.Marshal(map[string]string{"a": s})
			return string(b)
		},
		"percent": url.QueryEscape, "hexadecimal": func(s string) string { return hex.EncodeToString([]byte(s)) }, "markup": html.EscapeString,
		"escapes": func(s string) string {
			var b strings.Builder
			for _, c := range s {
				_, _ = fmt.Fprintf(&b, `\u%04x`, c)
			}
			return b.String()
		},
		"base64 of base64": func(s string) string {
			return base64.URLEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(s))))
		},
	}
	for name, form := range forms {
		for how, run := range map[string]saying{"answer": {}, "sentence": {fails: true}, "cause": {cause: true}} {
			for said, passes := range map[string]bool{secret: false, other: true} {
				run.text = "it is " + form(said)
				set, err := tool.NewSet([]tool.Tool{{Name: "a", Schema: schema, Runner: run}, {Name: "b", Schema: schema, Runner: run}},
					func(bool) ([]string, error) { return []string{"another-secret-of-the-set"}, nil }, func(bool) ([]string, error) { return []string{secret}, nil })
				if err != nil {
					t.Fatal(err)
				}
				one, _ := set.Get("b")
				got, err := one.Call(t.Context(), tool.Call{Arguments: "{}"})
				told := got
				if err != nil {
					told += err.Error()
				}
				if !passes && strings.Contains(told, form(said)) {
					t.Errorf("%s, %s: it is told: %q", name, how, told)
				}
				if passes && how != "answer" && !strings.Contains(told, form(said)) {
					t.Errorf("%s, %s: what is like it is not told: %q", name, how, told)
				}
				if how == "answer" && (err == nil) != passes {
					t.Errorf("%s: %q, %v", name, got, err)
				}
			}
		}
	}
	if _, err := tool.NewSet([]tool.Tool{{Name: "a", Description: "use " + secret, Schema: schema, Runner: saying{}}}, func(bool) ([]string, error) { return []string{secret}, nil }); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("a description with a secret: %v", err)
	}
	set, err := tool.NewSet([]tool.Tool{{Name: "a", Schema: schema, Runner: saying{text: "fine"}}}, func(bool) ([]string, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	one, _ := set.Get("a")
	if got, err := one.Call(t.Context(), tool.Call{Arguments: "{}"}); err != nil || got != `"fine"` {
		t.Errorf("%q, %v", got, err)
	}
}

// TestAToolIsTheOneThatWasJudged, or is not called.
func TestAToolIsTheOneThatWasJudged(t *testing.T) {
	one := tool.Tool{Name: "a", Runner: saying{text: "fine", defined: "1"}}
	judged := one.Definition()
	if got, err := one.Call(t.Context(), tool.Call{Judged: judged}); err != nil || got != `"fine"` {
		t.Errorf("%q, %v", got, err)
	}
	one.Runner = saying{text: "fine", defined: "2"}
	if got, err := one.Call(t.Context(), tool.Call{Judged: judged}); err == nil || got != "" {
		t.Errorf("another one is called: %q", got)
	}
}
