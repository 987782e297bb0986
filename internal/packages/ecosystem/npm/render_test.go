package npm_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm"
)

// verdicts allow all files but those of the versions.
func verdicts(ix *ecosystem.Index, withheld ...string) []ecosystem.Verdict {
	out := make([]ecosystem.Verdict, len(ix.Files))
	for i, f := range ix.Files {
		out[i] = ecosystem.Verdict{Allowed: true}
		if slices.Contains(withheld, f.Version) {
			out[i] = ecosystem.Verdict{Reason: "it is over the cap"}
		}
	}
	return out
}

func rendered(tb testing.TB, ix *ecosystem.Index, rows *ecosystem.MemoryRows, form ecosystem.Form, release string, withheld ...string) string {
	tb.Helper()
	var b strings.Builder
	if err := npm.New().Render(&b, ix, rows, ecosystem.View{Form: form, Verdicts: verdicts(ix, withheld...), Release: release}); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// packument is what clients read of a page.
type packument struct {
	ID       string                     `json:"_id"`
	Name     string                     `json:"name"`
	Tags     map[string]string          `json:"dist-tags"`
	Versions map[string]json.RawMessage `json:"versions"`
	Time     map[string]string          `json:"time"`
	Modified string                     `json:"modified"`
	License  string                     `json:"license"`
	Readme   string                     `json:"readme"`
}

func TestRenderPage(t *testing.T) {
	ix, rows := parsed(t, `{"name":"foo","dist-tags":{"latest":"2.0.0"},"license":"MIT","readme":"x","versions":{`+
		manifest("1.0.0", `,"description":"d"`)+","+manifest("1.1.0", "")+","+manifest("2.0.0", "")+
		`},"time":{"modified":"2022-01-01T00:00:00.5Z","created":"2020-01-01T00:00:00Z","1.0.0":"2020-01-01T00:00:00.123456Z","2.0.0":"2022-01-01T00:00:00Z"}}`)
	ix.Files[1].FirstSeen = time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC) // the gateway's, which is told to nobody
	for form, license := range map[ecosystem.Form]string{"full": "MIT", "abbreviated": ""} {
		body := rendered(t, ix, rows, form, "", "2.0.0")
		var got packument
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatalf("%v in\n%s", err, body)
		}
		if strings.Contains(string(got.Versions["1.0.0"]), "description") != (form == "full") {
			t.Errorf("%s: the manifest is %s", form, got.Versions["1.0.0"])
		}
		got.Versions = map[string]json.RawMessage{"1.0.0": nil, "1.1.0": got.Versions["1.1.0"][:0]}
		want := packument{
			ID: "foo", Name: "foo", Tags: map[string]string{"latest": "1.1.0"}, Versions: map[string]json.RawMessage{"1.0.0": nil, "1.1.0": {}},
			Time:     map[string]string{"created": "2020-01-01T00:00:00.000Z", "modified": "2022-01-01T00:00:00.500Z", "1.0.0": "2020-01-01T00:00:00.123Z", "1.1.0": "2022-01-01T00:00:00.500Z"},
			Modified: "2022-01-01T00:00:00.500Z", License: license,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", form, diff)
		}
		if strings.Contains(body, "2.0.0") || strings.Contains(body, "over the cap") {
			t.Errorf("%s shows what is withheld:\n%s", form, body)
		}
	}
}

func TestTags(t *testing.T) {
	ix, rows := parsed(t, `{"name":"foo","dist-tags":{"latest":"2.0.0","next":"3.0.0-rc.2","old":"0.9.0","top":"10.0.0"},"versions":{`+strings.Join([]string{
		manifest("0.9.0", ""), manifest("1.0.0", ""), manifest("1.9.0", ""), manifest("1.10.0", ""), manifest("2.0.0-rc.1", ""), manifest("2.0.0", ""),
		manifest("3.0.0-rc.1", ""), manifest("3.0.0-rc.2", ""), manifest("10.0.0", ""),
	}, ",")+`}}`)
	for name, c := range map[string]struct {
		withheld []string
		want     map[string]string
	}{
		"nothing":            {nil, map[string]string{"latest": "2.0.0", "next": "3.0.0-rc.2", "old": "0.9.0", "top": "10.0.0"}},
		"the latest":         {[]string{"2.0.0"}, map[string]string{"latest": "1.10.0", "next": "3.0.0-rc.2", "old": "0.9.0", "top": "10.0.0"}},
		"a pre-release":      {[]string{"3.0.0-rc.2"}, map[string]string{"latest": "2.0.0", "next": "2.0.0", "old": "0.9.0", "top": "10.0.0"}},
		"the oldest":         {[]string{"0.9.0"}, map[string]string{"latest": "2.0.0", "next": "3.0.0-rc.2", "top": "10.0.0"}},
		"all but a pre":      {[]string{"0.9.0", "1.0.0", "1.9.0", "1.10.0", "2.0.0", "3.0.0-rc.1", "3.0.0-rc.2", "10.0.0"}, map[string]string{"latest": "2.0.0-rc.1", "next": "2.0.0-rc.1", "top": "2.0.0-rc.1"}},
		"all below latest":   {[]string{"0.9.0", "1.0.0", "1.9.0", "1.10.0", "2.0.0-rc.1", "2.0.0", "3.0.0-rc.1"}, map[string]string{"latest": "10.0.0", "next": "3.0.0-rc.2", "top": "10.0.0"}},
		"all but a high pre": {[]string{"0.9.0", "1.0.0", "1.9.0", "1.10.0", "2.0.0-rc.1", "2.0.0", "3.0.0-rc.2", "10.0.0"}, map[string]string{"latest": "3.0.0-rc.1", "next": "3.0.0-rc.1", "top": "3.0.0-rc.1"}},
	} {
		var got map[string]string
		if err := json.Unmarshal([]byte(rendered(t, ix, rows, "full", "-/dist-tags", c.withheld...)), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s withheld (-want +got):\n%s", name, diff)
		}
	}
}

func TestRelease(t *testing.T) {
	ix, rows := parsed(t, `{"name":"foo","dist-tags":{"latest":"2.0.0","old":"1.0.0"},"versions":{`+strings.Join([]string{
		manifest("1.0.0", ""), manifest("1.1.0", ""), manifest("2.0.0", ""), manifest("3.0.0", `,"dependencies":{"bar":"u/r"}`),
	}, ",")+`}}`)
	for release, want := range map[string]string{"1.0.0": `"version":"1.0.0"`, "latest": `"version":"1.1.0"`, "old": `"version":"1.0.0"`} {
		if got := rendered(t, ix, rows, "full", release, "2.0.0"); !strings.HasPrefix(got, `{"name":"foo",`+want) || !json.Valid([]byte(got)) {
			t.Errorf("%s is %s", release, got)
		}
	}
	for release, want := range map[string]struct {
		category error
		sentence string
	}{
		"2.0.0": {fault.ErrForbidden, "over the cap"},
		"3.0.0": {fault.ErrForbidden, "requires bar"},
		"4.0.0": {fault.ErrNotFound, "no release"},
		"beta":  {fault.ErrNotFound, "no release"},
	} {
		err := npm.New().Render(&strings.Builder{}, ix, rows, ecosystem.View{Form: "full", Verdicts: verdicts(ix, "2.0.0"), Release: release})
		if !errors.Is(err, want.category) || !strings.Contains(err.Error(), want.sentence) {
			t.Errorf("%s: %v; want %v: %q", release, err, want.category, want.sentence)
		}
	}
}

// TestNothingAllowed: an empty page would break clients and explain nothing.
func TestNothingAllowed(t *testing.T) {
	ix, rows := parsed(t, document(manifest("1.0.0", ""), manifest("2.0.0", "")))
	for _, release := range []string{"", "-/dist-tags", "latest", "1.0.0"} {
		var b strings.Builder
		err := npm.New().Render(&b, ix, rows, ecosystem.View{Form: "full", Verdicts: verdicts(ix, "1.0.0", "2.0.0"), Release: release})
		if !errors.Is(err, fault.ErrForbidden) || !strings.Contains(err.Error(), "over the cap") || b.Len() != 0 {
			t.Errorf("%q: %v, %q", release, err, b.String())
		}
	}
	ix, rows = parsed(t, document(manifest("1.0.0", `,"dependencies":{"bar":"u/r"}`)))
	if err := npm.New().Render(&strings.Builder{}, ix, rows, ecosystem.View{Form: "full"}); !errors.Is(err, fault.ErrForbidden) || !strings.Contains(err.Error(), "requires bar") {
		t.Errorf("a package of which all is left out: %v", err)
	}
}

// TestRowsGone: rows that can't be read end the page.
func TestRowsGone(t *testing.T) {
	ix, _ := parsed(t, document(manifest("1.0.0", "")))
	if err := npm.New().Render(&strings.Builder{}, ix, &ecosystem.MemoryRows{}, ecosystem.View{Form: "full", Verdicts: verdicts(ix)}); err == nil {
		t.Error("a page was written without its rows")
	}
	ix.Rows = nil
	if err := npm.New().Render(&strings.Builder{}, ix, &ecosystem.MemoryRows{}, ecosystem.View{Form: "full", Verdicts: verdicts(ix)}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("an index of another protocol: %v", err)
	}
}
