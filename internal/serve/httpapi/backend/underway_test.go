package backend_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

func asks(t *testing.T, method, path string) *http.Request {
	t.Helper()
	return httptest.NewRequestWithContext(t.Context(), method, path, nil)
}

// TestRequestsUnderWayAreCounted: of one token and of all there may be so many, and no others keep one from
// those that it has for sure.
func TestRequestsUnderWayAreCounted(t *testing.T) {
	u := backend.NewUnderway()
	follow := asks(t, http.MethodGet, "/v1/events")
	join := func(owner string, most int) (joined int, leave func(), err error) {
		for joined < most {
			left, err := u.Join(owner, follow)
			if err != nil {
				return joined, leave, err
			}
			leave = left
			joined++
		}
		return joined, leave, nil
	}
	n, leave, err := join("ann", backend.UnderwayEach+1)
	if n != backend.UnderwayEach || !errors.Is(err, fault.ErrExhausted) || !strings.HasPrefix(err.Error(), "1024 requests of this token are under way") {
		t.Errorf("%d of one token, %v", n, err)
	}
	for _, end := range []*http.Request{
		asks(t, http.MethodDelete, "/sandboxes/x"), asks(t, http.MethodPost, "/process.Process/SendSignal"), asks(t, http.MethodPost, "/v1/sandboxes/x/commands/y/signal"),
	} {
		gone, err := u.Join("ann", end)
		if err != nil {
			t.Errorf("%s %s: %v", end.Method, end.URL, err)
			continue
		}
		gone()
	}
	leave()
	if n, _, err := join("ann", 1); n != 1 {
		t.Errorf("in the place of one that left: %v", err)
	}
	for _, owner := range []string{"bob", "eve", "dan"} {
		if n, _, err := join(owner, backend.UnderwayEach); err != nil {
			t.Fatalf("%s: %d, %v", owner, n, err)
		}
	}
	if n, _, err := join("tom", backend.UnderwayAll); n != backend.UnderwaySure || !errors.Is(err, fault.ErrExhausted) {
		t.Errorf("a token that comes when all places are taken has %d, %v", n, err)
	}
	for _, owner := range []string{"bob", "tom"} { // who have used up their own, and those that they have for sure
		ended := 0
		for ; ended <= backend.UnderwayEach; ended++ {
			if _, err := u.Join(owner, asks(t, http.MethodDelete, "/sandboxes/x")); err != nil {
				break
			}
		}
		if ended != 64 {
			t.Errorf("when all places are taken, %d requests of %s that end something are let in", ended, owner)
		}
	}
}

// TestRequestsOfAHandlerAreCounted: so with a wire that is a handler of its own, however its token is written;
// a caller without one is that handler's to turn away.
func TestRequestsOfAHandlerAreCounted(t *testing.T) {
	u := backend.NewUnderway()
	reached := 0
	handler := u.Handler(func(secret string) (token.Token, bool) { return token.Token{ID: "tok-" + secret}, secret != "none" }, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	for range backend.UnderwayEach {
		if _, err := u.Join("tok-ann", asks(t, http.MethodGet, "/mcp")); err != nil {
			t.Fatal(err)
		}
	}
	for authorization, want := range map[string]int{
		"Bearer ann": http.StatusTooManyRequests, "bearer \t ann": http.StatusTooManyRequests, "Bearer\tann": http.StatusTooManyRequests,
		"Bearer bob": http.StatusOK, "Bearer none": http.StatusOK, "": http.StatusOK,
	} {
		r, w := asks(t, http.MethodGet, "/mcp"), httptest.NewRecorder()
		r.Header.Set("Authorization", authorization)
		r.Header.Set("X-Api-Key", "bob") // which this wire does not look at
		if handler.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%q: %d %s", authorization, w.Code, w.Body)
		}
	}
	if reached != 3 {
		t.Errorf("%d requests came through", reached)
	}
	for owner := 0; ; owner++ { // until all of all tokens are under way, of which one ends soon
		if _, err := u.Join("tok-"+strconv.Itoa(owner/backend.UnderwaySure), asks(t, http.MethodGet, "/mcp")); err != nil {
			break
		}
	}
	for secret, again := range map[string]string{"ann": "", "new": "1"} {
		r, w := asks(t, http.MethodGet, "/mcp"), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer "+secret)
		var p api.Problem
		handler.ServeHTTP(w, r)
		err := json.Unmarshal(w.Body.Bytes(), &p)
		if err != nil || w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("Retry-After") != again || p.Status != http.StatusTooManyRequests || !strings.Contains(p.Detail, "are under way") {
			t.Errorf("%s: %v %+v: %v %s", secret, err, p, w.Header(), w.Body)
		}
	}
}

// TestStrangersHaveAShareOfTheirOwn: requests without a token are bounded, and leave those of tokens alone.
func TestStrangersHaveAShareOfTheirOwn(t *testing.T) {
	u := backend.NewUnderway()
	var all []func()
	for range backend.UnderwayStrangers {
		leave, err := u.JoinStranger(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, leave)
	}
	if _, err := u.JoinStranger(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)); !errors.Is(err, fault.ErrExhausted) || fault.RetryAfter(err) == 0 {
		t.Errorf("one more: %v", err)
	}
	leave, err := u.Join("ann", httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if err != nil {
		t.Fatalf("strangers keep a token from asking: %v", err)
	}
	leave()
	all[0]()
	if leave, err = u.JoinStranger(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)); err != nil {
		t.Errorf("when one has left: %v", err)
	}
	leave()
}
