package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// matrix is the folder of the golden files of the client matrix, one for each
// client, and of what scripts need for them.
const matrix = "testdata/matrix"

// matrixTables are the tables of docs/ecosystems.md: which clients, by the
// names of their golden files, and what they are called there.
func matrixTables() []matrixTable {
	return []matrixTable{
		{"Python", [][2]string{{"pip23", "pip 23"}, {"pip26", "pip 26"}, {"uv", "uv"}}},
		{"Node", [][2]string{{"npm10", "npm 10"}, {"npm11", "npm 11"}, {"pnpm9", "pnpm 9"}, {"pnpm10", "pnpm 10"}}},
		{"Go", [][2]string{{"go", "go"}}},
	}
}

// matrixQuestions are the headings of golden files, in the tables' order. A
// client has those that it can be asked.
func matrixQuestions() []string {
	return []string{
		"allowed",
		"the newest is outside the range",
		"pinned, outside the range",
		"open, outside the range",
		"on no list",
		"blocked",
		"blocked, and gone from the registry",
		"with its dependencies",
		"a dependency on no list, which an allowed package wants",
		"a source distribution",
		"install scripts, which its entry does not allow",
		"install scripts, which its entry allows",
		"under another name",
		"no such project",
		"a lockfile with what is on no list",
		"a lockfile with another digest",
		"a lockfile that names another package's file",
		"an index of its own choosing",
		"a direct address",
		"a git address",
		"a git address, and its use switched on",
		"declared private",
		"a repository's short name",
		"a file that is not there",
		"another version of the client",
		"another package manager",
		"another toolchain",
		"a tool, fetched and run",
		"headers to compile with",
		"a browser",
		"what is outdated",
		"what is known of a release",
		"what is known of a refused one",
		"the archive of a refused one",
		"known vulnerabilities",
		"frozen: what the lockfile has",
		"frozen: what the lockfile has, by its name alone",
		"frozen: what the lockfile has, with other bytes",
		"frozen: the same, with the client's checks switched off",
		"frozen: another file of what the lockfile has",
		"frozen: what the lockfile does not have",
		"frozen: another version than the lockfile's",
		"offline: what was fetched before",
		"offline: a lockfile of what was fetched before",
		"offline: what was not",
	}
}

// matrixAsides are headings of what no client says.
func matrixAsides() []string {
	return []string{"cofferdam why, after that", "what the run says at its end"}
}

type matrixTable struct {
	name    string
	clients [][2]string
}

// golden FILE CLIENT compares a file, after normalising it, with the client's
// golden file in testdata/matrix.
func golden(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: golden FILE CLIENT")
	}
	normalise(ts, false, args[:1])
	path := filepath.Join(ts.Getenv("REPO"), "test", "e2e", matrix, args[1]+".golden")
	if os.Getenv("COFFERDAM_UPDATE") != "" {
		ts.Check(os.WriteFile(path, []byte(ts.ReadFile(args[0])), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("want.golden"), want, 0o600))
	ts.Check(ts.Exec("diff", "-u", "want.golden", args[0]))
}

// goldenPart is answers FILE CLIENT: it compares what a client was asked, after
// normalising it, with the answers to the same questions in its golden file, where not
// all of them are asked.
func goldenPart(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: answers FILE CLIENT")
	}
	normalise(ts, false, args[:1])
	golden, err := os.ReadFile(filepath.Join(ts.Getenv("REPO"), "test", "e2e", matrix, args[1]+".golden"))
	ts.Check(err)
	asked := strings.Split("\n"+strings.TrimSpace(ts.ReadFile(args[0])), "\n# ")[1:]
	if len(asked) < 2 {
		ts.Fatalf("%s has no answers to several questions", args[0])
	}
	for _, answer := range asked {
		if question, _, _ := strings.Cut(answer, "\n"); slices.Contains(matrixAsides(), question) {
			continue
		}
		answer = "\n# " + strings.TrimSpace(answer) + "\n\n"
		if !strings.Contains("\n"+string(golden), answer) {
			ts.Fatalf("%s.golden does not have this:%s", args[1], answer)
		}
	}
}

// TestEcosystemsTable: what docs/ecosystems.md says that clients show is what
// they showed in the matrix. COFFERDAM_UPDATE=1 writes it.
func TestEcosystemsTable(t *testing.T) {
	const begin, end = "<!-- matrix: written by test/e2e -->\n", "<!-- end of matrix -->\n"
	page := filepath.Join("..", "..", "docs", "ecosystems.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	have, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("docs/ecosystems.md lacks the lines %q and %q", begin, end)
	}
	want := ""
	for _, table := range matrixTables() {
		want += table.render(t)
	}
	if want == have {
		return
	}
	if os.Getenv("COFFERDAM_UPDATE") == "" {
		t.Fatal("the tables of docs/ecosystems.md are not those of test/e2e/testdata/matrix: run this test with COFFERDAM_UPDATE=1")
	}
	if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// render writes a row for each question and each different thing shown.
func (m matrixTable) render(t *testing.T) string {
	t.Helper()
	shown := map[string]map[string]string{}
	for _, c := range m.clients {
		shown[c[0]] = answers(t, c[0])
	}
	b := &strings.Builder{}
	fmt.Fprintf(b, "\n### %s\n\n| asked for | client | what it shows |\n|---|---|---|\n", m.name)
	for _, q := range matrixQuestions() {
		var order []string
		clients := map[string][]string{}
		for _, c := range m.clients {
			if s, ok := shown[c[0]][q]; ok {
				if clients[s] == nil {
					order = append(order, s)
				}
				clients[s] = append(clients[s], c[1])
			}
		}
		for _, s := range order {
			fmt.Fprintf(b, "| %s | %s | %s |\n", q, strings.Join(clients[s], ", "), s)
			q = ""
		}
	}
	return b.String() + "\n"
}

// answers are the table's cells of a client, by question.
func answers(t *testing.T, client string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(matrix, client+".golden"))
	if err != nil {
		t.Fatal(err)
	}
	cells := map[string]string{}
	for section := range strings.SplitSeq("\n"+string(text), "\n# ") {
		question, body, _ := strings.Cut(section, "\n")
		if question == "" || slices.Contains(matrixAsides(), question) {
			continue
		}
		if !slices.Contains(matrixQuestions(), question) {
			t.Errorf("%s.golden has the heading %q, which is none of matrixQuestions", client, question)
		}
		if cells[question] != "" {
			t.Errorf("%s.golden has the heading %q twice", client, question)
		}
		cells[question] = cell(body)
	}
	return cells
}

// The cells that a table makes of an answer. Constants.
var (
	ours    = regexp.MustCompile(`Blocked by cofferdam|cofferdam withholds|: the upstream has no `)
	cause   = regexp.MustCompile(`fatal: |(?i)no matching|failed, reason|no such|integrity checksum|unexpected checksum|mismatch|do not match|could not resolve`)
	telling = regexp.MustCompile(`(?i)\berr|error|not found|could not|denied|warn|fail`)
	ending  = regexp.MustCompile(`(?m)^\(exit (\d+)\)$`)
	tail    = regexp.MustCompile(`;? request ID.*| +request: ID.*`)
	words   = regexp.MustCompile(`\pL`)
)

// cell is what a table shows of an answer: the line with the gateway's reason,
// else the one that says best what is wrong, or that it went well.
func cell(body string) string {
	well := false
	if m := ending.FindStringSubmatch(body); m != nil {
		well = m[1] == "0"
	}
	lines := slices.DeleteFunc(strings.Split(body, "\n"), func(l string) bool {
		return !words.MatchString(l) || ending.MatchString(l)
	})
	at := slices.IndexFunc(lines, ours.MatchString)
	if at < 0 && well {
		return "succeeds"
	}
	for _, re := range []*regexp.Regexp{cause, telling} {
		if at < 0 {
			at = slices.IndexFunc(lines, re.MatchString)
		}
	}
	if at < 0 {
		at = len(lines) - 1
	}
	if at < 0 {
		return "fails, and says nothing"
	}
	line := strings.TrimSpace(tail.ReplaceAllString(lines[at], " …"))
	if at+2 < len(lines) && strings.TrimSpace(lines[at+1]) == "server response:" { // go: the reason is the body's
		line += ": " + strings.TrimSpace(lines[at+2]) + " …"
	}
	line = "`" + strings.ReplaceAll(strings.ReplaceAll(line, "`", "'"), "|", `\|`) + "`"
	if well {
		return "succeeds, and shows " + line
	}
	return line
}
