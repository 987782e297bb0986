package httpapi_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
)

// TestInstallsHaveEachRecordOnce: whatever two tokens and the host did in whatever order, and
// however many are asked for at a time, a token gets each record of its own once, in order, on
// as many pages as if it were alone; and what it is told of another record is a position, too.
func TestInstallsHaveEachRecordOnce(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	ann, tok := in.as(token.Grant{Name: "ann"})
	appendOne := func(r audit.Record) uint64 {
		done, err := in.log.Append(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		return done.Seq
	}
	appendOne(audit.Record{Kind: audit.KindSandbox, Outcome: audit.Started, Run: "hers", Sandbox: "sbhers", Detail: map[string]string{"token": tok.ID}})
	const own, seed = 40, 7
	random := rand.New(rand.NewPCG(seed, 1))
	served := uint64(0)
	for n := range own {
		served = appendOne(audit.Record{Kind: audit.KindPackage, Outcome: audit.Aborted, Run: "hers", Sandbox: "sbhers", Ecosystem: "python", Package: "own" + strconv.Itoa(n), Detail: map[string]string{records.DetailServed: strconv.FormatUint(served, 10)}})
		others := random.IntN(4)
		if n == own/2 || n == own-1 {
			others = 1_100 // more than one page of the log
		}
		for range others {
			appendOne(audit.Record{Kind: audit.KindPackage, Outcome: audit.Blocked, Run: "other", Sandbox: "sbother", Ecosystem: "python", Package: "rich"})
		}
	}
	for _, limit := range []int{1, 2, 3, own - 1, own, 0} {
		var names []string
		pages, before := 0, uint64(0)
		for f := (client.InstallFilter{Limit: limit}); ; {
			page, err := ann.Installs(ctx, f)
			if err != nil {
				t.Fatal(err)
			}
			pages++
			for _, text := range page.Installs {
				var r audit.Record
				if err := json.Unmarshal(text, &r); err != nil {
					t.Fatal(err)
				}
				if told := r.Detail[records.DetailServed]; len(names) > 0 && told != strconv.FormatUint(before, 10) {
					t.Errorf("%s names the record before as %s, which was told as %d", r.Package, told, before)
				}
				names, before = append(names, r.Package), r.Seq
			}
			if page.Next == "" {
				break
			}
			f.After = page.Next
		}
		want, most := make([]string, own), 1
		for n := range want {
			want[n] = "own" + strconv.Itoa(n)
		}
		if limit > 0 {
			most = (own + limit - 1) / limit
		}
		if !slices.Equal(names, want) || pages != most {
			t.Errorf("by %d: %d pages, not %d, with %v", limit, pages, most, names)
		}
	}
	if _, err := ann.Installs(ctx, client.InstallFilter{After: "5"}); client.StatusOf(err) != http.StatusBadRequest {
		t.Errorf("a number from before tokens were told positions ends the list in silence: %v", err)
	}
}
