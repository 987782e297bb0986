package e2b

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

const (
	maxPage       = 100
	maxPageBytes  = 2 << 20 // that a page takes in memory, about; one element may take more
	nextHeader    = "X-Next-Token"
	totalHeader   = "X-Total-Running" // of all pages, as far as the filter has them
	maxNextLength = 256
)

// listPage is a part of a list.
type listPage struct {
	limit int
	after string // the key of the last one of the page before; "": the first page
}

func pageOf(q url.Values) (listPage, error) {
	p := listPage{limit: maxPage}
	if content := q.Get("limit"); content != "" {
		n, err := strconv.Atoi(content)
		if err != nil || n < 1 || n > maxPage {
			return listPage{}, fault.Invalid("limit is %q; it may be from 1 to %d", text.Shorten(content, 20), maxPage)
		}
		p.limit = n
	}
	if token := q.Get("nextToken"); token != "" {
		after, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil || len(token) > maxNextLength {
			return listPage{}, fault.Invalid("this server did not give that nextToken")
		}
		p.after = string(after)
	}
	return p, nil
}

// cutPage takes a page out of a sorted list and tells the client where the next one
// begins. Every element has a key of its own, in the list's order.
func cutPage[T any](w http.ResponseWriter, p listPage, all []T, key func(T) string, descending bool) []T {
	all, next := pageFrom(p, all, key, descending)
	if next != "" {
		w.Header().Set(nextHeader, next)
	}
	return all
}

// pageFrom takes a page out of a sorted list; next is where the next one begins, "": there is none.
func pageFrom[T any](p listPage, all []T, key func(T) string, descending bool) (_ []T, next string) {
	if p.after != "" {
		all = slices.DeleteFunc(all, func(e T) bool {
			order := strings.Compare(key(e), p.after)
			return order == 0 || order < 0 != descending
		})
	}
	if n := p.fitting(len(all), func(i int) int { return sizeOfListed(all[i]) }); n < len(all) {
		all = all[:n]
		next = base64.RawURLEncoding.EncodeToString([]byte(key(all[n-1])))
	}
	return all, next
}

// fitting is how many of a list's first elements a page has: as many as it may, and no more than it has
// room for.
func (p listPage) fitting(length int, size func(i int) int) int {
	sum := 0
	for i := range min(length, p.limit) {
		if sum += size(i); i > 0 && sum > maxPageBytes {
			return i
		}
	}
	return min(length, p.limit)
}

// sizeOfListed is about what an element of a list takes in an answer.
func sizeOfListed(e any) int {
	if sb, ok := e.(*sandbox.Sandbox); ok {
		e = listed(sb)
	}
	return backend.SizeOf(e)
}

// sortKey orders by time, then id.
func sortKey(at time.Time, id string) string {
	const sortable = "2006-01-02T15:04:05.000000000"
	return at.UTC().Format(sortable) + " " + id
}

// filter is what a list is asked for.
type filter struct {
	metadata  map[string]string
	states    []string
	after     time.Time
	template  string
	ascending bool
}

func filterOf(q url.Values) (filter, error) {
	var f filter
	var err error
	if f.metadata, err = metadataFilter(q.Get("metadata")); err != nil {
		return filter{}, err
	}
	for _, list := range q["state"] {
		for state := range strings.SplitSeq(list, ",") {
			if state != stateRunning && state != statePaused {
				return filter{}, fault.Invalid("state is %q; it may be %s or %s", text.Shorten(state, 20), stateRunning, statePaused)
			}
			f.states = append(f.states, state)
		}
	}
	if content := q.Get("startedAfter"); content != "" {
		if f.after, err = time.Parse(time.RFC3339, content); err != nil {
			return filter{}, fault.Invalid("startedAfter is %q, which is not a time such as 2026-01-31T12:00:00Z", text.Shorten(content, 40))
		}
	}
	f.template = q.Get("template")
	switch order := q.Get("order"); order {
	case "", "desc":
	case "asc":
		f.ascending = true
	default:
		return filter{}, fault.Invalid("order is %q; it may be asc or desc", text.Shorten(order, 20))
	}
	return f, nil
}

// metadataFilter reads a query within the query, whose names and values clients
// encode once more.
func metadataFilter(text string) (map[string]string, error) {
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, fault.Invalid("metadata must be a list of name=value")
	}
	m := map[string]string{}
	for k := range values {
		name, nameErr := url.PathUnescape(k)
		value, valueErr := url.PathUnescape(values.Get(k))
		if nameErr != nil || valueErr != nil {
			return nil, fault.Invalid("metadata must be a list of name=value")
		}
		m[name] = value
	}
	return m, nil
}

func (f filter) hasSandbox(sb *sandbox.Sandbox) bool {
	info := sb.Info()
	own := metadata(info.Labels)
	for k, v := range f.metadata {
		if got, there := own[k]; !there || got != v {
			return false
		}
	}
	switch {
	case len(f.states) > 0 && !slices.Contains(f.states, stateOf(sb)):
		return false
	case f.template != "" && f.template != templateID(info) && f.template != info.Template:
		return false
	}
	return !info.Created.Before(f.after)
}

func (c *Control) serveList(w http.ResponseWriter, r *keyedRequest) error {
	f, err := filterOf(r.URL.Query())
	if err != nil {
		return err
	}
	p, err := pageOf(r.URL.Query())
	if err != nil {
		return err
	}
	all := c.findSandboxes(r, f)
	tellRunning(w, all)
	return writeAnswer(r.Context(), w, http.StatusOK, listViews(cutPage(w, p, all, listKey, !f.ascending)))
}

// tellRunning tells how many of them run.
func tellRunning(w http.ResponseWriter, all []*sandbox.Sandbox) {
	n := 0
	for _, sb := range all {
		if stateOf(sb) == stateRunning {
			n++
		}
	}
	w.Header().Set(totalHeader, strconv.Itoa(n))
}

// listRunning answers with the first version's list: all that run, on one page, however many they are.
func (c *Control) listRunning(w http.ResponseWriter, r *keyedRequest) error {
	f, err := filterOf(r.URL.Query())
	if err != nil {
		return err
	}
	f.states = []string{stateRunning}
	all := c.findSandboxes(r, f)
	tellRunning(w, all)
	return backend.WriteList(r.Context(), w, http.StatusOK, func(yield func(listedSandbox) bool) {
		for _, sb := range all {
			if !yield(listed(sb)) {
				return
			}
		}
	})
}

func listKey(sb *sandbox.Sandbox) string { return sortKey(sb.Info().Created, sb.Info().ID) }

// findSandboxes returns the caller's sandboxes that a filter has, in its order.
func (c *Control) findSandboxes(r *keyedRequest, f filter) []*sandbox.Sandbox {
	var all []*sandbox.Sandbox
	for _, sb := range backend.Listed(c.cfg.Sandboxes, backend.TokenViewer(r.token.ID)) {
		if isLasting(sb) && f.hasSandbox(sb) {
			all = append(all, sb)
		}
	}
	slices.SortFunc(all, func(a, b *sandbox.Sandbox) int {
		if f.ascending {
			return cmp.Compare(listKey(a), listKey(b))
		}
		return cmp.Compare(listKey(b), listKey(a))
	})
	return all
}

func listViews(all []*sandbox.Sandbox) []listedSandbox {
	list := make([]listedSandbox, 0, len(all))
	for _, sb := range all {
		list = append(list, listed(sb))
	}
	return list
}
