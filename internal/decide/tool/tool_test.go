package tool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestArgumentsHaveOneForm: what is judged is what the tool gets, however it was spelt.
func TestArgumentsHaveOneForm(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":                               `{}`,
		" \n":                            `{}`,
		`{ "b":1 , "a":"x" }`:            `{"a":"x","b":1}`,
		`{"\u0061":"\u0063url"}`:         `{"a":"curl"}`,
		`{"n":9007199254740993,"f":1.0}`: `{"f":1.0,"n":9007199254740993}`,
		`{"s":"<&> \u2028 é \/"}`:        "{\"s\":\"<&> \u2028 é /\"}",
		`{"n":null,"t":true,"l":[1,{}]}`: `{"l":[1,{}],"n":null,"t":true}`,
	} {
		got, err := tool.ReadArguments(given)
		if err != nil || got.Text() != want {
			t.Errorf("%s: %s, %v; want %s", given, got.Text(), err, want)
		}
	}
	a, err := tool.ReadArguments(`{"path":"/\u0065tc","n":9007199254740993,"o":{"b":[1]},"z":null}`)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(a.Members()); got != "map[n:9007199254740993 o:map[b:[1]] path:/etc z:<nil>]" {
		t.Errorf("rules see %s", got)
	}
}

func TestArgumentsThatAreRefused(t *testing.T) {
	t.Parallel()
	for what, given := range map[string]string{
		"a list":              `[]`,
		"a text":              `"x"`,
		"null":                `null`,
		"two values":          `{} {}`,
		"half of one":         `{"a":`,
		"a member twice":      `{"a":1,"a":2}`,
		"twice, spelt apart":  `{"a":1,"\u0061":2}`,
		"no UTF-8":            "{\"a\":\"\xff\"}",
		"half a surrogate":    `{"a":"\ud800"}`,
		"a raw NUL":           "{\"a\":\"\x00\"}",
		"a comment":           `{/**/}`,
		"not a number":        `{"a":NaN}`,
		"too long":            `{"a":"` + strings.Repeat("x", tool.MaxArguments) + `"}`,
		"too deep":            `{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`,
		"a little too deep":   `{"a":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}`,
		"too many":            `{"a":[` + strings.Repeat("1,", 20_000) + `1]}`,
		"a long number":       `{"a":` + strings.Repeat("1", 65) + `}`,
		"a number like a day": `{"a":1e999999}`,
		"a small one":         `{"a":1E-999999}`,
	} {
		_, err := tool.ReadArguments(given)
		if !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := tool.ReadArguments(`{"a":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `,"b":"\u0000","c":1e300}`); err != nil {
		t.Errorf("the control: %v", err)
	}
}

func TestSchemasJudge(t *testing.T) {
	t.Parallel()
	s, err := tool.ParseSchema(`{
		"type": "object", "additionalProperties": false, "required": ["id"],
		"properties": { "id": {"type": "string", "pattern": "^[0-9]{1,9}$"}, "when": {"type": "string", "format": "date"}, "many": {"type": "array", "items": {"type": "integer", "maximum": 9}} }
	}`)
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{
		`{"id":"7"}`: "", `{"id":"7","when":"2026-01-31","many":[1,9]}`: "",
		`{}`:                           "id",
		`{"id":7}`:                     "id: ",
		`{"id":"x; rm -rf /"}`:         "id: ",
		`{"id":"7","other":1}`:         "other",
		`{"id":"7","when":"tomorrow"}`: "when: ",
		`{"id":"7","many":[1,99]}`:     "many.1: ",
	} {
		a, err := tool.ReadArguments(given)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Judge(a)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", given, err)
		case want != "" && (!errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "cofferdam:")):
			t.Errorf("%s: %v; want %s", given, err, want)
		}
	}
}

// TestSchemasAreWholeByThemselves: nothing is read for one, neither from the network nor
// from a file.
func TestSchemasAreWholeByThemselves(t *testing.T) {
	t.Parallel()
	for what, text := range map[string]string{
		"a file":       `{"$ref":"file:///etc/hostname"}`,
		"the network":  `{"$ref":"http://schemas.example/x"}`,
		"no schema":    `{"type":"thing"}`,
		"a bad regexp": `{"type":"object","properties":{"a":{"pattern":"("}}}`,
		"no JSON":      `{`,
		"twice":        `{"type":"object","type":"object"}`,
	} {
		if _, err := tool.ParseSchema(text); err == nil {
			t.Errorf("%s: nothing is wrong", what)
		}
	}
	if s, err := tool.ParseSchema(`{"$defs":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/n"}}}`); err != nil {
		t.Error(err)
	} else if a, _ := tool.ReadArguments(`{"a":"x"}`); s.Judge(a) == nil {
		t.Error("a reference within does not judge")
	}
}

// runner is a tool in a test.
type runner func(ctx context.Context, call tool.Call) ([]byte, error)

// Definition implements tool.Runner.
func (runner) Definition() string { return "a function of the test" }

func (r runner) Run(ctx context.Context, call tool.Call) ([]byte, error) { return r(ctx, call) }

func says(text string) runner {
	return func(context.Context, tool.Call) ([]byte, error) { return []byte(text), nil }
}

func TestResults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what string
		tool tool.Tool
		want string // or, after a !, what the failure says
	}{
		{"text", tool.Tool{Runner: says("5\n")}, `"5\n"`},
		{"JSON", tool.Tool{JSON: true, Runner: says("{\"a\": 5 }\n")}, `{"a":5}`},
		{"no JSON", tool.Tool{JSON: true, Runner: says("Traceback: x")}, "!not JSON"},
		{"two values", tool.Tool{JSON: true, Runner: says("1 2")}, "!not JSON"},
		{"a member twice", tool.Tool{JSON: true, Runner: says(`{"a":1,"a":2}`)}, "!not JSON"},
		{"none", tool.Tool{JSON: true, Runner: says("")}, "!not JSON"},
		{"no text", tool.Tool{Runner: says("\xff")}, "!not text"},
		{"too much", tool.Tool{Limits: tool.Limits{Output: 2}, Runner: says("123")}, "!more than the 2 bytes"},
		{"its own failure", tool.Tool{Runner: runner(func(context.Context, tool.Call) ([]byte, error) { return nil, &tool.Failure{Sentence: "it failed"} })}, "!it failed"},
		{"another error", tool.Tool{Runner: runner(func(context.Context, tool.Call) ([]byte, error) { return nil, errors.New("/etc/secret") })}, "!could not be run"},
	} {
		got, err := c.tool.Call(t.Context(), tool.Call{})
		failure, failed := errors.AsType[*tool.Failure](err)
		switch want, fails := strings.CutPrefix(c.want, "!"); {
		case !fails && (err != nil || got != want):
			t.Errorf("%s: %s, %v", c.what, got, err)
		case fails && (!failed || !strings.Contains(failure.Sentence, want) || strings.Contains(failure.Sentence, "secret") || got != ""):
			t.Errorf("%s: %s, %v", c.what, got, err)
		}
	}
}

func TestTimeIsLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs := tool.Tool{Limits: tool.Limits{Time: time.Minute}, Runner: runner(func(ctx context.Context, _ tool.Call) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})}
		if _, err := hangs.Call(t.Context(), tool.Call{}); err == nil || !strings.Contains(err.Error(), "within 1m0s") {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := hangs.Call(ctx, tool.Call{}); err == nil || !strings.Contains(err.Error(), "was ended before") {
			t.Error(err)
		}
	})
}

func TestSets(t *testing.T) {
	t.Parallel()
	s, _ := tool.ParseSchema("")
	named := func(names ...string) (all []tool.Tool) {
		for _, n := range names {
			all = append(all, tool.Tool{Name: n, Schema: s, Runner: says("")})
		}
		return all
	}
	set, err := tool.NewSet(named("b", "lookup_order", "a.b-c"))
	if err != nil || len(set.All()) != 3 || set.All()[0].Name != "a.b-c" {
		t.Fatalf("%v, %v", set, err)
	}
	if found, ok := set.Get("b"); !ok || found.Name != "b" {
		t.Error("b is not found")
	}
	if _, ok := set.Get("c"); ok {
		t.Error("c is found")
	}
	for _, wrong := range [][]string{{"a", "a"}, {""}, {"a b"}, {"-x"}, {"a/b"}, {strings.Repeat("a", 65)}, {"a\n"}} {
		if _, err := tool.NewSet(named(wrong...)); err == nil {
			t.Errorf("%q: nothing is wrong", wrong)
		}
	}
	var none *tool.Set
	if _, ok := none.Get("a"); ok || len(none.All()) > 0 {
		t.Error("no set has tools")
	}
}
