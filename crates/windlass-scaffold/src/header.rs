//! The license of a project, and the comment at the head of the project's Rust files.

use serde::{Deserialize, Serialize};

/// The license of a project.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum License {
    /// The Apache License 2.0.
    #[default]
    Apache2,
    /// No license, and no comment at the head of files.
    None,
    /// The text of a file.
    Custom,
}

impl License {
    /// Returns the SPDX expression for `Cargo.toml`, if the license has an SPDX expression.
    pub(crate) fn spdx(self) -> Option<&'static str> {
        (self == Self::Apache2).then_some("Apache-2.0")
    }

    /// Returns the comment for the head of Rust files. `custom` is the text of the license file.
    pub fn header(self, owner: Option<&str>, year: i32, custom: Option<&str>) -> Option<String> {
        match self {
            Self::None => None,
            Self::Custom => custom.map(comment),
            Self::Apache2 => {
                let owner = owner.map(|owner| format!(" {owner}")).unwrap_or_default();
                Some(comment(&format!("Copyright {year}{owner}.\n\n{APACHE2}")))
            }
        }
    }
}

/// Returns the text as line comments. A text of comments is unchanged.
fn comment(text: &str) -> String {
    let text = text.trim_end();
    if text.starts_with("//") || text.starts_with("/*") {
        return format!("{text}\n");
    }
    let line = |line: &str| {
        if line.trim().is_empty() { "//\n".to_owned() } else { format!("// {}\n", line.trim_end()) }
    };
    text.lines().map(line).collect()
}

const APACHE2: &str = "\
Licensed under the Apache License, Version 2.0 (the \"License\");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an \"AS IS\" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
";
