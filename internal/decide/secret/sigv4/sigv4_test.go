package sigv4_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/sigv4"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// now is the time of the examples below.
var now = time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)

// TestTheServicesOwnExamples: what AWS's documentation of S3 has for its example keys.
func TestTheServicesOwnExamples(t *testing.T) {
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	keys := sigv4.Keys{ID: "AKIAIOSFODNN7EXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	s3 := func(method, target string, header map[string]string) *http.Request {
		r := httptest.NewRequest(method, target, http.NoBody)
		r.Host = "examplebucket.s3.amazonaws.com"
		for name, value := range header {
			r.Header.Set(name, value)
		}
		return r
	}
	for name, c := range map[string]struct {
		request *http.Request
		fields  string
		want    string
	}{
		"get": {
			s3("GET", "/test.txt", map[string]string{"Range": "bytes=0-9", "X-Amz-Content-Sha256": empty}),
			"host;range;x-amz-content-sha256;x-amz-date", "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
		},
		"put": {
			s3("PUT", "/test%24file.text", map[string]string{
				"Date": "Fri, 24 May 2013 00:00:00 GMT", "X-Amz-Storage-Class": "REDUCED_REDUNDANCY", "X-Amz-Content-Sha256": "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
			}),
			"date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class", "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
		},
		"lifecycle": {
			s3("GET", "/?lifecycle", map[string]string{"X-Amz-Content-Sha256": empty}),
			"host;x-amz-content-sha256;x-amz-date", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
		},
		"list": {
			s3("GET", "/?max-keys=2&prefix=J", map[string]string{"X-Amz-Content-Sha256": empty}),
			"host;x-amz-content-sha256;x-amz-date", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
		},
	} {
		c.request.Header.Set("X-Amz-Date", "20990101T000000Z") // the client's time does not count
		c.request.Header.Set("X-Amz-Meta-Unsigned", "1")
		c.request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=PLACEHOLDER/20990101/us-east-1/s3/aws4_request,SignedHeaders="+c.fields+",Signature=00")
		scope, signed, err := sigv4.Read(c.request.Header)
		if err != nil || !signed || scope.Key != "PLACEHOLDER" || scope.Service != "s3" || scope.Region != "us-east-1" {
			t.Fatalf("%s: %+v, %v", name, scope, err)
		}
		to, err := scope.Over(c.request, nil, false, "identity")
		if err != nil {
			t.Fatal(err)
		}
		got, err := to.Sign(t.Context(), keys, now)
		if err != nil {
			t.Fatal(err)
		}
		want := http.Header{
			"Authorization": {"AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=" + c.fields + ", Signature=" + c.want},
			"X-Amz-Date":    {"20130524T000000Z"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestASessionsToken is signed, whether the client had one or not.
func TestASessionsToken(t *testing.T) {
	q := sigv4.Request{Method: "POST", Host: "sts.example", Path: "/", Payload: "UNSIGNED-PAYLOAD", Region: "us-east-1", Service: "sts", Header: http.Header{"X-Amz-Security-Token": {"the-clients"}}}
	got, err := q.Sign(t.Context(), sigv4.Keys{ID: "ASIA1", Secret: "secret", Token: "the-token"}, now)
	if err != nil || got.Get("X-Amz-Security-Token") != "the-token" || !strings.Contains(got.Get("Authorization"), "SignedHeaders=host;x-amz-date;x-amz-security-token,") {
		t.Errorf("%v, %v", got, err)
	}
	got, err = q.Sign(t.Context(), sigv4.Keys{ID: "AKIA1", Secret: "secret"}, now)
	if err != nil || len(got["X-Amz-Security-Token"]) > 0 || strings.Contains(got.Get("Authorization"), "security-token") {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := q.Sign(t.Context(), sigv4.Keys{ID: "ASIA1", Secret: "secret", Until: now}, now); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("keys that have expired signed: %v", err)
	}
}

// TestPathsAreSignedAsServicesReadThem: S3's once escaped, all others' twice.
func TestPathsAreSignedAsServicesReadThem(t *testing.T) {
	signature := func(service, path string) string {
		q := sigv4.Request{Method: "GET", Host: "a.example", Path: path, Payload: "UNSIGNED-PAYLOAD", Region: "us-east-1", Service: service}
		h, err := q.Sign(t.Context(), sigv4.Keys{ID: "AKIA1", Secret: "secret"}, now)
		if err != nil {
			t.Fatal(err)
		}
		_, s, _ := strings.Cut(h.Get("Authorization"), "Signature=")
		return s
	}
	// Computed by another program over the canonical requests.
	for _, c := range []struct{ service, path, want string }{
		{"s3", "/a%3Ab", "b835ca944c1fd798fdbbeb802c2cf5166a06982965f9ef3a038264c80070c60a"},
		{"lambda", "/a%3Ab", "0a287c0a30e037506dfc084e14f7f96cdd5d3c120ef11296e8e1235dc8ee99be"},
	} {
		if got := signature(c.service, c.path); got != c.want {
			t.Errorf("%s %s: %s", c.service, c.path, got)
		}
	}
}

func TestReadKeys(t *testing.T) {
	if k, err := sigv4.ReadKeys("AKIA1", "the/secret+key"); err != nil || k.ID != "AKIA1" || k.Secret != "the/secret+key" || k.Token != "" {
		t.Errorf("%+v, %v", k, err)
	}
	k, err := sigv4.ReadKeys("", `{"Version":1,"AccessKeyId":"ASIA1","SecretAccessKey":"canary","SessionToken":"token","Expiration":"2013-05-24T01:00:00Z"}`)
	if err != nil || k != (sigv4.Keys{ID: "ASIA1", Secret: "canary", Token: "token", Until: now.Add(time.Hour)}) {
		t.Errorf("%+v, %v", k, err)
	}
	for _, text := range []string{"canary", `{"AccessKeyId":"ASIA1"}`, `{"AccessKeyId":"A/B","SecretAccessKey":"canary"}`, `{"AccessKeyId":"ASIA1","SecretAccessKey":"canary","SessionToken":"a\nb"}`, `{"AccessKeyId":"ASIA1","SecretAccessKey":"canary","Expiration":"canary"}`} {
		if k, err := sigv4.ReadKeys("", text); !errors.Is(err, fault.ErrUnavailable) || k != (sigv4.Keys{}) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestWhatCameFromElsewhereIsLookedAtOnceMore: who asks for a signature may have read it wrong.
func TestWhatCameFromElsewhereIsLookedAtOnceMore(t *testing.T) {
	good := sigv4.Request{Method: "GET", Host: "a.example", Path: "/", Payload: "UNSIGNED-PAYLOAD", Region: "us-east-1", Service: "s3"}
	for name, change := range map[string]func(q *sigv4.Request){
		"": func(*sigv4.Request) {}, "path": func(q *sigv4.Request) { q.Path = "%zz" }, "no path": func(q *sigv4.Request) { q.Path = "" },
		"service": func(q *sigv4.Request) { q.Service = "s3/aws4" }, "region": func(q *sigv4.Request) { q.Region = "" }, "method": func(q *sigv4.Request) { q.Method = "TRACE" },
	} {
		q := good
		change(&q)
		if h, err := q.Sign(t.Context(), sigv4.Keys{ID: "AKIA1", Secret: "secret"}, now); (err == nil) != (name == "") || (len(h) > 0) != (name == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
