package api

import (
	"testing"

	"paidonce/problem"
)

// Both spellings of texts within records mean the same; what is empty or null is left out.
func TestTextsWithinRecordsAreRead(t *testing.T) {
	for _, tc := range []struct{ json, form, canonical string }{
		{
			`{"shipping":{"phone":"1","name":"n","carrier":"c","address":{"state":"s","city":"x"}}}`,
			"shipping[address][city]=x&shipping[name]=n&shipping[phone]=1&shipping%5Baddress%5D%5Bstate%5D=s&shipping[carrier]=c",
			`{"shipping":{"address":{"city":"x","state":"s"},"carrier":"c","name":"n","phone":"1"}}`,
		},
		{
			`{"shipping":{"phone":null,"name":"n","address":{"city":"x","line2":""}}}`,
			"shipping[phone]=&shipping[name]=n&shipping[address][city]=x&shipping[address][line2]=",
			`{"shipping":{"address":{"city":"x"},"name":"n"}}`,
		},
		{`{"shipping":{"address":{"city":"x"}}}`, "shipping[address][city]=x", `{"shipping":{"address":{"city":"x"}}}`},
		{`{"shipping":null}`, "shipping=", `{}`},
	} {
		for _, p := range []func() (*parameters, *problem.Error){
			func() (*parameters, *problem.Error) { return chargeJSON(tc.json) },
			func() (*parameters, *problem.Error) { return chargeForm(tc.form) },
		} {
			got, e := p()
			if e != nil {
				t.Errorf("%s: %v", tc.canonical, e)
			} else if c := string(got.canonical()); c != tc.canonical {
				t.Errorf("got %s, want %s", c, tc.canonical)
			}
		}
	}
}

func TestTextsWithinRecordsAreReadStrictly(t *testing.T) {
	for body, want := range map[string][2]string{
		`{"shipping":{"town":"x"}}`:                            {"parameter_unknown", "shipping[town]"},
		`{"shipping":{"address":{"town":"x"}}}`:                {"parameter_unknown", "shipping[address][town]"},
		`{"shipping":{"address[city]":"x"}}`:                   {"parameter_unknown", "shipping[address[city]]"},
		`{"shipping":{"city":"x"}}`:                            {"parameter_unknown", "shipping[city]"},
		`{"shipping":{"Name":"x"}}`:                            {"parameter_unknown", "shipping[Name]"},
		`{"shipping":{"name":"x","name":"x"}}`:                 {"parameter_duplicate", "shipping[name]"},
		`{"shipping":{"address":{"city":"x","city":""}}}`:      {"parameter_duplicate", "shipping[address][city]"},
		`{"shipping":{"address":{},"address":{"city":"x"}}}`:   {"parameter_duplicate", "shipping[address]"},
		`{"shipping":{"address":{"city":"x"},"address":null}}`: {"parameter_duplicate", "shipping[address]"},
		`{"shipping":{"address":null}}`:                        {"parameter_invalid", "shipping[address]"},
		`{"shipping":{"name":""}}`:                             {"parameter_invalid_empty", "shipping[name]"},
		"shipping[name]=":                                      {"parameter_invalid_empty", "shipping[name]"},
		"shipping[address]=":                                   {"parameter_invalid", "shipping[address]"},
		`{"shipping":{"name":1}}`:                              {"parameter_invalid", "shipping[name]"},
		`{"shipping":{"name":{}}}`:                             {"parameter_invalid", "shipping[name]"},
		`{"shipping":{"address":"x"}}`:                         {"parameter_invalid", "shipping[address]"},
		`{"shipping":{"address":{"city":{"a":"b"}}}}`:          {"parameter_invalid", "shipping[address][city]"},
		`{"shipping":{"name":"\u0000"}}`:                       {"parameter_invalid", "shipping[name]"},
		`{"shipping":"x"}`:                                     {"parameter_invalid", "shipping"},
		`{"shipping":[]}`:                                      {"parameter_invalid", "shipping"},
		"shipping[town]=x":                                     {"parameter_unknown", "shipping[town]"},
		"shipping[address][town]=x":                            {"parameter_unknown", "shipping[address][town]"},
		"shipping[address][city][a]=x":                         {"parameter_unknown", "shipping[address][city][a]"},
		"shipping[address][city=x":                             {"parameter_unknown", "shipping[address][city"},
		"shipping[]=x":                                         {"parameter_unknown", "shipping[]"},
		"shipping[name]=x&shipping[name]=x":                    {"parameter_duplicate", "shipping[name]"},
		"shipping[address][city]=x&shipping[address]=":         {"parameter_duplicate", "shipping[address]"},
		"shipping[address]=&shipping[address][city]=x":         {"parameter_invalid", "shipping[address]"},
		"shipping=&shipping[name]=x":                           {"parameter_duplicate", "shipping"},
		"shipping[name]=x&shipping=":                           {"parameter_duplicate", "shipping"},
		"shipping[address]=x":                                  {"parameter_invalid", "shipping[address]"},
		"shipping=x":                                           {"parameter_invalid", "shipping"},
		"shipping[name]=a%00":                                  {"parameter_invalid", "shipping[name]"},
	} {
		read := chargeForm
		if body[0] == '{' {
			read = chargeJSON
		}
		p, e := read(body)
		switch {
		case e == nil:
			t.Errorf("%s is accepted: %s", body, p.canonical())
		case e.Name() != want[0] || e.Param != want[1]:
			t.Errorf("%s: got %s of %s, want %s of %s", body, e.Name(), e.Param, want[0], want[1])
		}
	}
}
