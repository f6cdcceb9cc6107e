package api

import (
	"strings"
	"testing"
)

// document is a body that a JSON reader must accept (y), must refuse (n), or may do either with
// (i), by RFC 8259. We refuse all of i: where two readers may differ, two parties may disagree
// about a payment.
type document struct {
	name, body string
}

// in puts a value where any text may stand.
func in(value string) string { return `{"metadata":{"v":` + value + `}}` }

// documents exercise the grammar. What is not an object of our parameters is refused whatever the
// grammar says; so the y kind puts its subject where it is allowed.
var documents = []document{
	{"y_empty_object", `{}`},
	{"y_spaces_everywhere", " \t\r\n{ \"amount\" \n:\t1 \r, \"currency\" : \"usd\" } \n"},
	{"y_string_empty", in(`""`)},
	{"y_string_all_escapes", in(`"\"\\\/\b\f\n\r\t\u0041"`)},
	{"y_string_escaped_control", in(`"\u0001\u001f\u007f"`)},
	{"y_string_raw_delete", in("\"\x7f\"")},
	{"y_string_raw_line_separators", in("\"\u2028\u2029\"")},
	{"y_string_pair_of_surrogates", in(`"\ud834\udd1e"`)},
	{"y_string_raw_astral", in("\"\U0001D11E\"")},
	{"y_string_noncharacter", in(`"\uffff\ufdd0"`)},
	{"y_string_last_code_point", in("\"\U0010FFFF\"")},
	{"y_string_hex_in_both_cases", in(`"\u00eA\u00Ea"`)},
	{"y_string_looks_like_markup", in(`"<!-- & -->"`)},
	{"y_name_escaped", `{"\u0061mount":1}`},
	{"y_name_with_space", `{"metadata":{" ":"x"}}`},
	{"y_number_zero", `{"amount":0}`},
	{"y_number_negative", `{"amount":-1}`},
	{"y_number_largest", `{"amount":9223372036854775807}`},
	{"y_literals", `{"capture":true}`},
	{"y_literal_false", `{"capture":false}`},

	{"n_nothing_but_a_brace", `{`},
	{"n_two_braces", `{{`},
	{"n_closing_only", `}`},
	{"n_wrong_closing", `{]`},
	{"n_unquoted_name", `{amount:1}`},
	{"n_single_quotes", `{'amount':1}`},
	{"n_missing_colon", `{"amount" 1}`},
	{"n_double_colon", `{"amount"::1}`},
	{"n_missing_value", `{"amount":}`},
	{"n_missing_comma", `{"amount":1 "currency":"usd"}`},
	{"n_leading_comma", `{,"amount":1}`},
	{"n_trailing_comma", `{"amount":1,}`},
	{"n_two_trailing_commas", `{"amount":1,,}`},
	{"n_comma_after_the_end", `{"amount":1},`},
	{"n_closed_twice", `{"amount":1}}`},
	{"n_comment_block", `{"amount":1/* one */}`},
	{"n_comment_line", "{\"amount\":1} // one\n"},
	{"n_comment_hash", "{\"amount\":1} # one\n"},
	{"n_name_number", `{1:1}`},
	{"n_name_null", `{null:1}`},
	{"n_name_not_closed", `{"amount`},
	{"n_number_leading_zero", `{"amount":01}`},
	{"n_number_plus", `{"amount":+1}`},
	{"n_number_minus_only", `{"amount":-}`},
	{"n_number_minus_zero_one", `{"amount":-01}`},
	{"n_number_no_fraction", `{"amount":1.}`},
	{"n_number_no_integer", `{"amount":.1}`},
	{"n_number_empty_exponent", `{"amount":1e}`},
	{"n_number_signed_empty_exponent", `{"amount":1e+}`},
	{"n_number_hex", `{"amount":0x1}`},
	{"n_number_underscore", `{"amount":1_000}`},
	{"n_number_space", `{"amount":1 000}`},
	{"n_number_nan", `{"amount":NaN}`},
	{"n_number_infinity", `{"amount":Infinity}`},
	{"n_number_fullwidth_digit", "{\"amount\":\uff11}"},
	{"n_number_then_letter", `{"amount":1a}`},
	{"n_literal_capital", `{"capture":True}`},
	{"n_literal_cut", `{"capture":tru`},
	{"n_literal_long", `{"capture":truee}`},
	{"n_string_not_closed", in(`"x`)},
	{"n_string_raw_newline", in("\"\n\"")},
	{"n_string_raw_tab", in("\"\t\"")},
	{"n_string_raw_nul", in("\"\x00\"")},
	{"n_string_raw_unit_separator", in("\"\x1f\"")},
	{"n_string_bad_escape", in(`"\a"`)},
	{"n_string_escaped_quote_at_end", in(`"\"`)},
	{"n_string_short_unicode_escape", in(`"\u00A"`)},
	{"n_string_capital_unicode_escape", in(`"\U00000041"`)},
	{"n_string_octal_escape", in(`"\101"`)},
	{"n_string_escaped_newline", in("\"\\\n\"")},
	{"n_string_escape_of_multibyte", in("\"\\é\"")},
	{"n_whitespace_form_feed", "{\f}"},
	{"n_whitespace_vertical_tab", "{\v}"},
	{"n_whitespace_no_break_space", "{\u00a0}"},
	{"n_whitespace_word_joiner", "\u2060{}"},
	{"n_nul_before", "\x00{}"},
	{"n_nul_after", "{}\x00"},
	{"n_text_after", `{} x`},
	{"n_object_after", `{}{}`},
	{"n_object_after_newline", "{}\n{}"},
	{"n_array", `[{"amount":1}]`},
	{"n_number", `1`},
	{"n_string", `"amount"`},
	{"n_only_whitespace", " \n"},
	{"n_markup", `<charge/>`},
	{"n_form", `amount=1&currency=usd`},
	{"n_open_arrays", strings.Repeat("[", 50_000)},
	{"n_open_objects", strings.Repeat(`{"metadata":`, 50_000)},

	{"i_byte_order_mark", "\ufeff{}"},
	{"i_utf16_le", "\xff\xfe{\x00}\x00"},
	{"i_utf16_be", "\x00{\x00}"},
	{"i_lone_high_surrogate", in(`"\ud800"`)},
	{"i_lone_low_surrogate", in(`"\udfff"`)},
	{"i_reversed_surrogates", in(`"\udd1e\ud834"`)},
	{"i_high_then_letter", in(`"\ud800a"`)},
	{"i_high_then_escape", in(`"\ud800\n"`)},
	{"i_latin1", in("\"\xe9\"")},
	{"i_overlong", in("\"\xc0\xaf\"")},
	{"i_overlong_long", in("\"\xfc\x83\xbf\xbf\xbf\xbf\"")},
	{"i_encoded_surrogate", in("\"\xed\xa0\x80\"")},
	{"i_beyond_unicode", in("\"\xf4\xbf\xbf\xbf\"")},
	{"i_cut_sequence", in("\"\xe0\xff\"")},
	{"i_invalid_name", "{\"\xb9\":\"0\"}"},
	{"i_huge_exponent", `{"amount":1e9999999}`},
	{"i_tiny_exponent", `{"amount":1e-9999999}`},
	{"y_long_number", `{"amount":` + strings.Repeat("1", 5000) + `}`},
	{"y_beyond_int64", `{"amount":9223372036854775808}`},
	{"i_minus_zero", `{"amount":-0}`},
	{"i_one_point_zero", `{"amount":1.0}`},
	{"i_duplicate_name", `{"amount":1,"amount":1}`},
	{"i_nul_escape", in(`"\u0000"`)},
}

func TestDocumentsOfTheGrammar(t *testing.T) {
	for _, d := range documents {
		t.Run(d.name, func(t *testing.T) {
			_, e := chargeJSON(d.body)
			switch {
			case strings.HasPrefix(d.name, "y_"):
				if e != nil {
					t.Errorf("%.100q is refused: %v", d.body, e)
				}
			case e == nil:
				t.Errorf("%.100q is accepted", d.body)
			case e.Code.Status() != 400:
				t.Errorf("%.100q: %v", d.body, e)
			}
		})
	}
}
