package dev.windlass.junit;

import static org.junit.jupiter.api.Assertions.assertSame;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(WindlassExtension.class)
class WindlassExtensionTest {
    private final WindlassCluster cluster;

    WindlassExtensionTest(WindlassCluster cluster) {
        this.cluster = cluster;
    }

    @Test
    void allParametersAreTheSameCluster(WindlassCluster other) {
        assertSame(cluster, other);
    }
}
