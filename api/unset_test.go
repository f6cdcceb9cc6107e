package api

import (
	"testing"

	"paidonce/problem"
)

// What takes away what is there is written in four ways, which are one request.
func TestEmptyAndNullUnset(t *testing.T) {
	takes := shape{
		{name: "description", kind: text, unset: true}, {name: "metadata", kind: pairs, most: 45, unset: true},
		{name: "url", kind: text},
	}
	for _, tc := range []struct{ form, json, canonical string }{
		{"description=", `{"description":""}`, `{"description":null}`},
		{"description=", `{"description":null}`, `{"description":null}`},
		{"metadata=", `{"metadata":""}`, `{"metadata":null}`},
		{"metadata=", `{"metadata":null}`, `{"metadata":null}`},
		{"metadata[a]=&metadata[b]=c", `{"metadata":{"b":"c","a":null}}`, `{"metadata":{"a":"","b":"c"}}`},
		{"metadata[a]=", `{"metadata":{"a":""}}`, `{"metadata":{"a":""}}`},
		{"", `{}`, `{}`},
	} {
		form, e := decodeForm(tc.form, takes, problem.BodyMalformed)
		if e != nil || string(form.canonical()) != tc.canonical {
			t.Errorf("form %s: %v, %s, want %s", tc.form, e, form.canonical(), tc.canonical)
		}
		json, e := decodeJSON([]byte(tc.json), takes)
		if e != nil || string(json.canonical()) != tc.canonical {
			t.Errorf("JSON %s: %v, %s, want %s", tc.json, e, json.canonical(), tc.canonical)
		}
	}
	checkRefusals(t, []refusal{
		{"twice", "description=&description=a", "parameter_duplicate", "description"},
		{"all and one", "metadata=&metadata[a]=1", "parameter_duplicate", "metadata"},
		{"what cannot be taken away", "url=", "parameter_invalid_empty", "url"},
	}, func(in string) (*parameters, *problem.Error) { return decodeForm(in, takes, problem.BodyMalformed) })
	checkRefusals(t, []refusal{
		{"null of what cannot be taken away", `{"url":null}`, "parameter_invalid", "url"},
	}, func(in string) (*parameters, *problem.Error) { return decodeJSON([]byte(in), takes) })
}

func TestCreatedIsOneSecondOrARange(t *testing.T) {
	for _, tc := range []struct {
		query        string
		from, before int64
	}{
		{"created=1764403200", 1764403200, 1764403201},
		{"created[gte]=5&created[lt]=7", 5, 7},
		{"created[gt]=5&created[lte]=7", 6, 8},
	} {
		p, e := decodeForm(tc.query, listShape, problem.QueryMalformed)
		if e != nil {
			t.Fatalf("%s: %v", tc.query, e)
		}
		created, _ := p.get("created")
		from, before := timeRange(created.members)
		if from.Unix() != tc.from || before.Unix() != tc.before {
			t.Errorf("%s: from %d to before %d, want %d and %d", tc.query, from.Unix(), before.Unix(), tc.from, tc.before)
		}
	}
}
