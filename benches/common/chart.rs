//! Bars as an SVG picture.

/// Bars that are compared with one another.
pub(crate) struct Group {
    title: String,
    unit: String,
    bars: Vec<Bar>,
}

/// A bar, and what stands beside it.
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) label: String,
}

impl Group {
    pub(crate) fn new(title: &str, unit: &str) -> Self {
        Group { title: title.to_owned(), unit: unit.to_owned(), bars: Vec::new() }
    }

    pub(crate) fn bar(&mut self, bar: Bar) -> &mut Self {
        self.bars.push(bar);
        self
    }
}

const WIDTH: f64 = 860.0;
const NAMES: f64 = 300.0;
const LABELS: f64 = 190.0;
const ROW: f64 = 24.0;

/// The groups below one another, each with a scale of its own.
pub(crate) fn draw(title: &str, groups: &[Group]) -> String {
    let (mut body, mut y) = (String::new(), 8.0);
    for group in groups {
        let most = group.bars.iter().map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max);
        y += ROW;
        body += &format!(
            "  <text class=\"title\" x=\"8\" y=\"{y}\">{}, {}</text>\n",
            escape(&group.title),
            escape(&group.unit)
        );
        for (index, bar) in group.bars.iter().enumerate() {
            y += ROW;
            let length = (bar.value / most * (WIDTH - NAMES - LABELS)).max(1.0);
            let class = if index == 0 { "floor" } else { "way" };
            body += &format!(
                "  <text x=\"{}\" y=\"{y}\" text-anchor=\"end\">{}</text>\n",
                NAMES - 8.0,
                escape(&bar.name)
            );
            body += &format!(
                "  <rect class=\"{class}\" x=\"{NAMES}\" y=\"{}\" width=\"{length:.1}\" height=\"16\"/>\n",
                y - 12.5
            );
            body += &format!(
                "  <text x=\"{:.1}\" y=\"{y}\">{}</text>\n",
                NAMES + length + 6.0,
                escape(&bar.label)
            );
        }
        y += ROW / 2.0;
    }
    let height = y + 8.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-label=\"{}\">\n  <style>\n    text {{ font: 13px sans-serif; fill: #1f2328; }}\n    \
         .title {{ font-weight: 600; }}\n    .floor {{ fill: #8c959f; }}\n    .way {{ fill: #0969da; }}\n  </style>\n  \
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n",
        escape(title)
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
