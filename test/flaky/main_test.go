package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hiccup is a test that fails the first time, or a check after all of them that does.
const hiccup = `package p

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if _, err := os.Stat("leaked"); err != nil && os.Getenv("LEAKS") != "" {
		os.WriteFile("leaked", nil, 0o600)
		code = 1
	}
	os.Exit(code)
}

func TestOther(t *testing.T) {}

func TestOnce(t *testing.T) {
	t.Run("a part, 2.31/b", func(t *testing.T) {
		if os.Getenv("LEAKS") != "" {
			return
		}
		if _, err := os.Stat("came"); err != nil {
			os.WriteFile("came", nil, 0o600)
			t.Fatal("the registry had a hiccup")
		}
	})
}
`

// TestAHiccupIsListed runs gotestsum on a module of its own.
func TestAHiccupIsListed(t *testing.T) {
	m := module(t)
	if err := m.command([]string{"unit", "./...", "--", "-count=1"}); err != nil {
		t.Fatalf("%v\n%s", err, m.out)
	}
	said(t, m, "the registry had a hiccup", "\nunit took ", " processors.\n")
	for range 2 { // the list stays
		m.out = &strings.Builder{}
		if err := m.command([]string{"list"}); err != nil {
			t.Fatal(err)
		}
		said(t, m, "FLAKY: ", "TestOnce/a_part,_2.31/b of throwaway.example/p\n", "the registry had a hiccup", "(all of it: .tests/unit.json)")
	}
	if err := m.command([]string{"forget"}); err != nil {
		t.Fatal(err)
	}
	m.out = &strings.Builder{}
	if err := m.command([]string{"list"}); err != nil {
		t.Fatal(err)
	}
	said(t, m, "No test was flaky.")
}

// TestNothingElseIsForgiven: gotestsum runs the package again without any test, and
// is content.
func TestNothingElseIsForgiven(t *testing.T) {
	t.Setenv("LEAKS", "yes")
	m := module(t)
	err := m.command([]string{"unit", "./...", "--", "-count=1"})
	if err == nil || !strings.Contains(err.Error(), "throwaway.example/p failed beside its tests") {
		t.Fatalf("a check of TestMain was forgiven: %v\n%s", err, m.out)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"unit"}, {"unit", "--"}, {"--", "-v"}} {
		if err := (tests{out: &strings.Builder{}, dir: t.TempDir()}).command(args); err == nil || !strings.Contains(err.Error(), "usage: ") {
			t.Errorf("%q gives %v", args, err)
		}
	}
}

func module(t *testing.T) tests {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module throwaway.example/p\n\ngo 1.26.0\n", "p_test.go": hiccup} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return tests{root: filepath.Join("..", ".."), dir: dir, out: &strings.Builder{}}
}

func said(t *testing.T, m tests, want ...string) {
	t.Helper()
	text := m.out.(*strings.Builder).String()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("it does not say %q:\n%s", w, text)
		}
	}
}
