package httpapi

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// maxPage bounds one page of anything, and maxPageBytes what a page of sandboxes takes in memory: its
// client may be slow, and ask for more than one at a time.
const (
	maxPage      = 1_000
	maxPageBytes = 2 << 20
)

// listSandboxes answers with the caller's sandboxes that the query selects, oldest
// first, a page at a time.
func (s sandboxRoutes) listSandboxes(w http.ResponseWriter, r *http.Request) error {
	by, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	q := r.URL.Query()
	if err := checkQueryKeys(q, "state", "run", "template", "snapshot", "label", "limit", "after"); err != nil {
		return err
	}
	limit, err := pageSize(q)
	if err != nil {
		return err
	}
	after, err := parsePlace(q.Get("after"))
	if err != nil {
		return err
	}
	if s.cfg.Sandboxes == nil {
		return errNotWired
	}
	page := api.SandboxPage{Sandboxes: []api.Sandbox{}}
	boxes := slices.SortedFunc(slices.Values(backend.Listed(s.cfg.Sandboxes, by.viewer())), func(a, b *sandbox.Sandbox) int { return placeAt(a).compare(placeAt(b)) })
	size := 0
	for _, sb := range boxes {
		if placeAt(sb).compare(after) <= 0 {
			continue
		}
		v := s.viewSandbox(sb, nil)
		matched, err := selects(q, v)
		if err != nil {
			return err
		}
		if !matched {
			continue
		}
		if size += backend.SizeOf(v); len(page.Sandboxes) == limit || len(page.Sandboxes) > 0 && size > maxPageBytes {
			last := page.Sandboxes[len(page.Sandboxes)-1]
			page.Next = listPlace{last.Created, last.ID}.String()
			break
		}
		page.Sandboxes = append(page.Sandboxes, v)
	}
	return writeJSON(w, r, http.StatusOK, page)
}

// listPlace is where a sandbox stands in the list: it does not move when others come
// and go.
type listPlace struct {
	created time.Time
	id      string
}

func placeAt(sb *sandbox.Sandbox) listPlace { return listPlace{sb.Info().Created, sb.Info().ID} }

func (p listPlace) compare(q listPlace) int {
	return cmp.Or(p.created.Compare(q.created), strings.Compare(p.id, q.id))
}

// String is the place as a page's Next has it.
func (p listPlace) String() string { return strconv.FormatInt(p.created.UnixNano(), 10) + "." + p.id }

func parsePlace(text string) (listPlace, error) {
	if text == "" {
		return listPlace{}, nil
	}
	nanos, id, found := strings.Cut(text, ".")
	n, err := strconv.ParseInt(nanos, 10, 64)
	if err != nil || !found {
		return listPlace{}, fault.Invalid("after=%.60q is no page's next", text)
	}
	return listPlace{time.Unix(0, n).UTC(), id}, nil
}

// selects reports whether a query selects a sandbox: of each key one value has to
// fit, and of labels all.
func selects(q url.Values, v api.Sandbox) (bool, error) {
	for key, has := range map[string]string{"state": v.State, "run": v.Run, "template": v.Template, "snapshot": v.Snapshot} {
		if len(q[key]) > 0 && !slices.Contains(q[key], has) {
			return false, nil
		}
	}
	for _, label := range q["label"] {
		name, value, found := strings.Cut(label, "=")
		if !found {
			return false, fault.Invalid("label=%.60q is not KEY=VALUE", label)
		}
		if has, ok := v.Labels[name]; !ok || has != value {
			return false, nil
		}
	}
	return true, nil
}

// checkQueryKeys refuses a query with keys that the route does not have: one that is
// misspelled would select everything.
func checkQueryKeys(q url.Values, keys ...string) error {
	for key := range q {
		if !slices.Contains(keys, key) {
			return fault.Invalid("the query has %.40q; this route knows: %s", key, strings.Join(keys, ", "))
		}
	}
	return nil
}

// pageSize reads limit; without it a page is as large as pages are.
func pageSize(q url.Values) (int, error) {
	limit, err := parseNumber(q.Get("limit"))
	if err != nil {
		return 0, err
	}
	if limit == 0 || limit > maxPage {
		return maxPage, nil
	}
	return int(limit), nil
}
