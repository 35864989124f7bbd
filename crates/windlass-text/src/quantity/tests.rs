use proptest::prelude::*;

use super::*;

fn canonical(text: &str) -> String {
    text.parse::<Quantity>().expect(text).to_string()
}

#[test]
fn the_canonical_form_is_the_real_servers() {
    let cases = [
        ("0", "0"),
        ("0.5", "500m"),
        ("1024Mi", "1Gi"),
        ("1500m", "1500m"),
        ("1000m", "1"),
        ("1.5Gi", "1536Mi"),
        ("100k", "100k"),
        ("1000", "1k"),
        ("1e3", "1e3"),
        ("1E6", "1e6"),
        ("12345", "12345"),
        ("0.1Gi", "107374182400m"),
        ("1023", "1023"),
        ("512Ki", "512Ki"),
        (".5", "500m"),
        ("-2", "-2"),
        ("1n", "1n"),
        ("0.0000000001", "1n"),
        ("100e-2", "1"),
        ("1Ki", "1Ki"),
        ("0.5Ki", "512"),
        ("+3", "3"),
        ("00012", "12"),
        ("1.", "1"),
    ];
    for (text, wanted) in cases {
        assert_eq!(canonical(text), wanted, "{text}");
    }
}

/// The responses of kube-apiserver 1.36 to these requests of a container.
#[test]
fn the_stored_form_is_the_real_servers() {
    let stored = |text: &str| Quantity::canonical(text, Rounding::Thousandth).expect(text);
    for stays in [
        "1.500",
        "+3",
        "00012",
        "1.",
        "1E3",
        "1.5e25",
        "1.5e4",
        "1.50e2",
        "5e0",
        "5e00",
        "5e+3",
        "12e-3",
        "1001",
        "1028Mi",
        "+1Gi",
        "1025Ki",
        "123456789012345678",
        "123456.789",
    ] {
        assert_eq!(stored(stays), stays);
    }
    for (text, wanted) in [
        ("0.500", "500m"),
        (".500", "500m"),
        ("1.000", "1"),
        ("1000", "1k"),
        ("0001000", "1k"),
        ("0.0010", "1m"),
        ("1000e0", "1e3"),
        ("-0", "0"),
        ("0.0", "0"),
        ("0Ki", "0"),
        ("08Ki", "8Ki"),
        ("1.5Gi", "1536Mi"),
        ("1234567890123456789", "1234567890123456789"),
        ("1.234567890123", "1235m"),
        ("0.1234567890123", "124m"),
        ("123456.789012", "123456790m"),
        ("0.0001", "1m"),
        ("1e-9", "1e-3"),
        ("1.5e-3", "2e-3"),
        ("0.0005e1", "5e-3"),
        ("1e19", "10e18"),
        ("5e400", "50e399"),
        ("-0.0001", "-1m"),
        ("0.9999", "1"),
        ("9.9999", "10"),
        ("19.9999", "20"),
        ("0.0001Ki", "103m"),
    ] {
        assert_eq!(stored(text), wanted, "{text}");
    }
    assert_eq!(Quantity::canonical("0.0001", Rounding::Billionth).unwrap(), "100u");
    assert_eq!(Quantity::canonical("9.9999999999", Rounding::Billionth).unwrap(), "10");
}

#[test]
fn what_is_none_is_refused() {
    let malformed = ["", "a", "1.2.3", "1x", "1 Gi", "é", "1e3e3", "1e3k"];
    let suffix = ["1mm", "1ki", "+-1", "--1", "1e", "1+3", "1K"];
    for (texts, error) in [(&malformed[..], QuantityError::Malformed), (&suffix, QuantityError::Suffix)] {
        for text in texts {
            assert_eq!(text.parse::<Quantity>(), Err(error), "{text}");
        }
    }
}

#[test]
fn a_quantity_without_digits_is_nothing() {
    for text in [".", "+", "-", "k", "Ki", ".k", "e3"] {
        assert_eq!(canonical(text), "0", "{text}");
    }
}

#[test]
fn amounts_compare_across_suffixes() {
    let quantity = |text: &str| text.parse::<Quantity>().expect(text);
    assert!(quantity("1Gi") > quantity("1G"));
    assert_eq!(quantity("1000m"), quantity("1"));
    assert_eq!(quantity("1e3"), quantity("1k"));
    assert!(quantity("-1") < quantity("0"));
    assert_eq!(
        quantity("99999999999999999999999999999E").to_string(),
        quantity("9223372036854775807").to_string()
    );
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[-+0-9.eEinumkKMGTP]{0,40}|.{0,10}") {
        if let Ok(quantity) = text.parse::<Quantity>() {
            let again = quantity.to_string().parse::<Quantity>();
            prop_assert_eq!(again, Ok(quantity));
            for rounding in [Rounding::Thousandth, Rounding::Billionth] {
                let stored = Quantity::canonical(&text, rounding).expect("a quantity");
                prop_assert_eq!(Quantity::canonical(&stored, rounding), Ok(stored.clone()), "{}", text);
                if text.len() < 18 {
                    prop_assert_eq!(stored.parse::<Quantity>().unwrap(), quantity.rounded(rounding), "{}", text);
                }
            }
        }
    }

    #[test]
    fn the_canonical_form_stays(number in 0u64..u64::from(u32::MAX), suffix in "|m|k|M|G|Ki|Mi|Gi|e3|u") {
        let once = canonical(&format!("{number}{suffix}"));
        prop_assert_eq!(canonical(&once), once);
    }
}
